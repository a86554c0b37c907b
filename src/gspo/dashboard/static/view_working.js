/* View 1: is it working? */
(function () {
  "use strict";
  const G = window.G;
  const parts = {};

  const NAMES = [
    "reward/mean", "reward/std", "reward/strict_mean", "reward/strict_gap", "reward/pass_rate", "step/responses", "eval/*",
    "policy/entropy", "length/mean", "length/truncated_share", "clip/cut_share", "grad/norm", "log_s/std",
  ];

  function mount(section) {
    parts.verdict = G.el("p", { class: "verdict", tabindex: "0", data: { define: "verdict" } });
    parts.figures = G.el("div", { class: "figures" });
    parts.compare = G.el("div", { class: "scroll" });
    parts.damaged = G.el("div", {});
    parts.alarms = G.el("div", { class: "alarms" });
    section.append(parts.verdict, parts.figures, parts.compare, parts.damaged);
    const grid = G.grid(section);
    parts.reward = G.panel(grid, { title: "Reward, training and strict", chart: "reward", define: ["reward/mean", "reward/strict_mean"] });
    parts.heldOut = G.panel(grid, { title: "Held-out prompts", chart: "held_out", define: ["eval/pass@1", "eval/greedy"] });
    const alarms = G.panel(grid, { title: "Alarms", define: "alarm", wide: true });
    alarms.body.append(parts.alarms);
    parts.gap = G.panel(grid, { title: "Training less strict reward", chart: "strict_gap", define: "reward/strict_gap" });
    parts.cut = G.panel(grid, { title: "Share cut by the clip", chart: "cut_share", define: "clip/cut_share" });
    parts.length = G.panel(grid, { title: "Response length", chart: "length", define: "length/mean" });
    parts.entropy = G.panel(grid, { title: "Entropy", chart: "entropy", define: "policy/entropy" });
  }

  function rateContext(now, before) {
    if (!now) return "no evaluation recorded";
    const parts = [`95 %: ${G.two(now.low)} to ${G.two(now.high)}`];
    if (before && before.step !== now.step) parts.push(`at step ${before.step}: ${G.two(before.value)}`);
    return parts.map(G.together).join(" \u00b7 ");
  }

  function passAtK(headline) {
    const keys = Object.keys(headline.pass_at_k || {}).filter((key) => key !== "1").sort((a, b) => b - a);
    if (!keys.length) return G.figure("pass@k", G.number("eval/pass@8", null), "not recorded");
    const [largest, ...others] = keys;
    const context = others.map((key) => [`pass@${key} `, G.number(`eval/pass@${key}`, headline.pass_at_k[key], { show: G.two }), " "]);
    return G.figure(`pass@${largest}`, G.number(`eval/pass@${largest}`, headline.pass_at_k[largest], { show: G.two }), others.length ? context : "held-out, temperature 1");
  }

  function stepFigure(overview) {
    const { step, total_steps: total, status } = overview;
    const left = status === "running" && G.isNumber(overview.time_left_s)
      ? [G.number("time_left", overview.time_left_s, { show: G.duration, define: "time_left" }), " left"]
      : status;
    const elapsed = G.number("elapsed", overview.elapsed_s, { show: G.duration, define: "elapsed" });
    const of = total ? `of ${total.toLocaleString("en")} \u00b7 ` : null;
    const context = status === "running" ? [of, left, " \u00b7 ", elapsed, " so far"] : [of, left, " after ", elapsed];
    return G.figure("Step", G.number("step", step, { define: "step", step }), context);
  }

  function figures(overview) {
    const { headline, step } = overview;
    const start = G.isNumber(headline.reward_before) ? ["at start ", G.number("reward/mean", headline.reward_before, { show: G.two, step: 1 })] : null;
    const pass = headline.pass_at_1;
    return [
      G.figure("Reward now", G.number("reward/mean", headline.reward, { show: G.two, step }), start, "first"),
      G.figure("Held-out pass@1", G.number("eval/pass@1", pass && pass.value, { show: G.two, step: pass && pass.step }), rateContext(pass, headline.pass_at_1_before), "first"),
      passAtK(headline),
      G.figure("Greedy", G.number("eval/greedy", headline.greedy, { show: G.two }), "held-out, temperature 0"),
      G.figure(
        "Strict gap",
        G.number("reward/strict_gap", headline.strict_gap, { show: G.two, step }),
        G.isNumber(headline.strict_reward) ? ["strict reward ", G.number("reward/strict_mean", headline.strict_reward, { show: G.two, step })] : "no strict grader",
      ),
      stepFigure(overview),
    ];
  }

  const COMPARED = [
    ["step", "step", (o) => o.step, G.short],
    ["reward", "reward/mean", (o) => o.headline.reward, G.two],
    ["at start", "reward/mean", (o) => o.headline.reward_before, G.two],
    ["pass@1", "eval/pass@1", (o) => o.headline.pass_at_1 && o.headline.pass_at_1.value, G.two],
    ["greedy", "eval/greedy", (o) => o.headline.greedy, G.two],
    ["strict gap", "reward/strict_gap", (o) => o.headline.strict_gap, G.two],
    ["alarms", "alarm", (o) => (o.alarms || []).length, G.short],
  ];

  function compareTable(ctx) {
    const head = COMPARED.map(([title, define]) => G.el("th", { scope: "col", tabindex: "0", data: { define } }, title));
    const rows = ctx.runs.map((run) =>
      G.el(
        "tr",
        {},
        G.el("th", { scope: "row" }, G.el("span", { class: "run" }, G.el("span", { class: "dot", css: { "--dot": G.theme.series(run.slot) } }), G.oneLine(run.overview.name, 60))),
        COMPARED.map(([, name, value, show]) => G.el("td", {}, G.number(name, value(run.overview), { show, plain: true }))),
      ),
    );
    return G.el("table", { class: "plain" }, G.el("thead", {}, G.el("tr", {}, G.el("th", { scope: "col" }, "run"), head)), G.el("tbody", {}, rows));
  }

  function damagedNote(overview) {
    const files = overview.damaged || [];
    if (!files.length) return null;
    return G.el(
      "details",
      { class: "damaged" },
      G.el("summary", {}, `${G.plural(files.length, "file")} could not be read in full`),
      G.el("ul", {}, files.map((one) => G.el("li", {}, G.el("code", {}, G.oneLine(one.file, 120)), " ", G.longText(one.reason, 300)))),
    );
  }

  /* The 95 % interval of pass@1 as a band behind the lines: one for each run. */
  function intervals(ctx) {
    return ctx.runs.flatMap((run) => {
      const found = (run.overview.events || []).filter((event) => event.kind === "evaluated" && Array.isArray(event.interval));
      if (!found.length) return [];
      const color = G.theme.series(ctx.runs.length > 1 ? run.slot : 0);
      const value = found.map((event) => event["eval/pass@1"]);
      return [{
        type: "scatter", mode: "markers", x: found.map((event) => event.step), y: value, cliponaxis: false, showlegend: false, hoverinfo: "skip",
        marker: { size: 1, color }, error_y: { type: "data", symmetric: false, color, thickness: 1.5, width: 5,
          array: found.map((event, at) => event.interval[1] - value[at]), arrayminus: found.map((event, at) => value[at] - event.interval[0]) },
      }];
    });
  }

  function heldOut(ctx) {
    const ks = Object.keys(ctx.first.table.columns).map((name) => /^eval\/pass@(\d+)$/.exec(name)).filter(Boolean).map((match) => Number(match[1]));
    const shown = [1, Math.max(...ks)].filter((k, at, all) => Number.isFinite(k) && all.indexOf(k) === at);
    const series = shown.map((k, at) => ({ name: `eval/pass@${k}`, label: `pass@${k}`, slot: at })).concat({ name: "eval/greedy", label: "greedy", slot: 2 });
    G.lines(parts.heldOut, ctx, series, {
      unit: "share", alarms: true, extra: intervals, yaxis: { range: [0, 1.04] },
      missing: "No evaluation on held-out prompts is recorded. Without one, a rising reward may be prompts learnt by heart: set evaluate.prompts in the recipe.",
    });
    const evaluated = (ctx.first.overview.events || []).filter((event) => event.kind === "evaluated");
    const latest = ks.length ? evaluated[evaluated.length - 1] : null;
    parts.heldOut.note(latest ? [`Bars: 95 % interval of pass@1, from `, G.number("num_prompts", latest.num_prompts, { step: latest.step }), " prompts."] : null);
  }

  function charts(ctx) {
    G.lines(parts.reward, ctx, [{ name: "reward/mean", label: "training reward" }, { name: "reward/strict_mean", label: "strict reward" }], { unit: "reward", alarms: true, smooth: true });
    const strict = ctx.runs.some((run) => run.table.columns["reward/strict_mean"]);
    parts.reward.note(strict || !ctx.first.overview.step ? null : "Only the training grader's reward: the recipe names no strict grader (verifier.strict).");
    heldOut(ctx);
    G.lines(parts.gap, ctx, [{ name: "reward/strict_gap", label: "gap" }], {
      unit: "reward", alarms: true, free: true,
      missing: "The recipe names no strict grader (verifier.strict), so nothing says whether the policy learns the task or its grader.",
    });
    const wanted = ctx.first.overview.cut_share_wanted;
    G.lines(parts.cut, ctx, [{ name: "clip/cut_share", label: "cut" }], {
      unit: "share", alarms: true, levels: [{ y: wanted, label: "wanted" }],
      missing: "No cut share is recorded: with one minibatch a step every ratio is 1 and nothing can be cut.",
    });
    G.lines(parts.length, ctx, [{ name: "length/mean", label: "mean" }], { unit: "tokens", alarms: true });
    G.lines(parts.entropy, ctx, [{ name: "policy/entropy", label: "entropy" }], { unit: "nats per token", alarms: true });
  }

  function update(ctx) {
    const { overview } = ctx.first;
    const said = G.verdict(ctx.first);
    G.fillOnce(parts.verdict, said.text + ctx.runs.length, () => [
      ctx.runs.length > 1 ? G.el("span", { class: "soft" }, `${G.oneLine(overview.name, 60)}: `) : null,
      said.text,
    ]);
    parts.verdict.className = `verdict ${said.tone}`;
    G.fillOnce(parts.figures, JSON.stringify([overview.headline, overview.step, overview.status, overview.time_left_s, overview.elapsed_s]), () => figures(overview));
    G.fill(parts.compare, ctx.runs.length > 1 ? compareTable(ctx) : null);
    G.fillOnce(parts.damaged, JSON.stringify(overview.damaged), () => damagedNote(overview));
    G.alarmCards(parts.alarms, ctx.runs);
    charts(ctx);
  }

  G.view({ key: "working", title: "Is it working?", lead: "Reward, held-out answers, and what the alarms say.", names: NAMES, mount, update });
})();
