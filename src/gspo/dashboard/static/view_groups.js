/* View 5: groups and data. */
(function () {
  "use strict";
  const G = window.G;
  const parts = {};
  const loadUnits = G.latest();
  const NAMES = ["groups/*", "length/*", "verifier/*", "step/tokens", "reward/pass_rate", "reward/part/*"];

  function mount(section) {
    const grid = G.grid(section);
    parts.kinds = G.panel(grid, { title: "Groups: failed, mixed, solved", chart: "groups", define: ["groups/mixed", "groups/all_solved"], wide: true });
    parts.difficulty = G.panel(grid, { title: "By source and difficulty", chart: "difficulty", define: "group_pass_rate" });
    parts.idle = G.panel(grid, { title: "Tokens that taught nothing", chart: "idle_tokens", define: "groups/idle_tokens_share" });
    parts.lengths = G.panel(grid, { title: "Lengths by reward", chart: "lengths", define: "length" });
    parts.means = G.panel(grid, { title: "Mean length, right and wrong", chart: "mean_lengths", define: "length/mean_correct" });
    parts.ends = G.panel(grid, { title: "Cut at the limit, empty, without a verdict", chart: "truncated", define: ["length/truncated_share", "length/empty_share", "verifier/failed_share"], wide: true });
    parts.reward = G.panel(grid, { title: "Parts of the reward", chart: "reward_parts", define: "reward/part/{part}", wide: true });
    parts.sources = G.panel(grid, { title: "Sources of the step", define: "source", wide: true });
  }

  /* Of every group: its source and pass rate, over scored responses; null without any. */
  function groupsOf(units) {
    const found = new Map();
    units.group.forEach((group, row) => {
      if (!found.has(group)) found.set(group, { source: units.source[row], scored: 0, passed: 0, tokens: 0 });
      const one = found.get(group);
      one.tokens += units.length[row];
      if (units.reward[row] === null) return;
      one.scored++;
      if (units.reward[row] > 0.5) one.passed++;
    });
    return [...found.values()].map((one) => ({ ...one, rate: one.scored ? one.passed / one.scored : null }));
  }

  const MOST_SOURCES = 6; // own colours; the rest is drawn as one

  function bySource(groups) {
    const count = new Map();
    for (const group of groups) count.set(group.source, (count.get(group.source) || 0) + 1);
    const ranked = [...count.keys()].sort((a, b) => count.get(b) - count.get(a));
    const kept = ranked.slice(0, MOST_SOURCES);
    const rest = ranked.slice(MOST_SOURCES);
    const of = (sources) => groups.filter((group) => sources.includes(group.source));
    const named = kept.map((source) => [source, of([source])]);
    return rest.length ? named.concat([[`${rest.length} others`, of(rest)]]) : named;
  }

  function difficulty(ctx, groups) {
    const rated = groups.filter((group) => group.rate !== null);
    if (!rated.length) return parts.difficulty.say("No group of this step has a scored response.");
    const size = Math.max(2, Math.min(16, ctx.first.overview.group_size || 8));
    const make = () => {
      const x = G.range(size + 1).map((at) => at / size);
      const traces = bySource(rated).map(([source, own], at) => {
        const y = new Array(size + 1).fill(0);
        for (const group of own) y[Math.round(group.rate * size)]++;
        return { type: "bar", x, y, name: G.plotText(source, 30), marker: { color: G.theme.series(at) }, width: 0.82 / size, hovertemplate: `pass rate %{x:.2f}: %{y} groups<extra>${G.plotText(source, 30)}</extra>` };
      });
      return { traces, layout: { barmode: "stack", showlegend: true, margin: { l: 52, r: 14, t: 18, b: 44 }, xaxis: { title: "pass rate of the group (0: too hard, 1: too easy)", range: [-0.6 / size, 1 + 0.6 / size] }, yaxis: { title: "groups", nticks: 6 } } };
    };
    G.draw(parts.difficulty, make, { summary: `Groups by pass rate, ${rated.length} groups` });
    parts.difficulty.note(`About ${G.about(ctx, ctx.step)}.`);
    return null;
  }

  function lengths(ctx, units) {
    const kinds = [
      ["reward > 0.5", (reward) => reward !== null && reward > 0.5, 2, ""],
      ["reward up to 0.5", (reward) => reward !== null && reward <= 0.5, 1, "/"],
      ["no reward", (reward) => reward === null, 6, "x"],
    ];
    const longest = Math.max(...units.length, 1);
    const shortest = Math.min(...units.length);
    const width = Math.max(1, Math.ceil((longest - shortest + 1) / 30));
    const bins = Math.floor((longest - shortest) / width) + 1;
    const make = () => ({
      traces: kinds.map(([name, test, slot, shape]) => {
        const y = new Array(bins).fill(0);
        units.length.forEach((length, row) => { if (test(units.reward[row])) y[Math.floor((length - shortest) / width)]++; });
        return { type: "bar", name, x: G.range(bins).map((bin) => shortest + (bin + 0.5) * width - 0.5), y, marker: { color: G.theme.series(slot), pattern: G.hatch(shape) }, hovertemplate: `%{y} of about %{x:.0f} tokens<extra>${name}</extra>` };
      }).filter((trace) => trace.y.some(Boolean)),
      layout: { barmode: "stack", bargap: 0.08, showlegend: true, margin: { l: 52, r: 14, t: 18, b: 44 }, xaxis: { title: "tokens" }, yaxis: { title: "responses", nticks: 6 } },
    });
    G.draw(parts.lengths, make, { summary: `Lengths of ${units.length.length} responses by reward` });
    parts.lengths.note(`About ${G.about(ctx, ctx.step)}.`);
  }

  function sources(ctx, groups) {
    const rows = bySource(groups).map(([source, own]) => {
      const rated = own.filter((group) => group.rate !== null);
      const count = (test) => String(rated.filter(test).length);
      const idle = own.filter((group) => group.rate === null || group.rate === 0 || group.rate === 1).reduce((sum, group) => sum + group.tokens, 0);
      const all = own.reduce((sum, group) => sum + group.tokens, 0);
      return [G.oneLine(source, 60), String(own.length), G.share(G.fit.mean(rated.map((group) => group.rate))), count((g) => g.rate === 0), count((g) => g.rate > 0 && g.rate < 1), count((g) => g.rate === 1), all ? G.percent(idle / all) : G.NONE];
    });
    const titles = ["source", "groups", "pass rate", "all failed", "mixed", "all solved", "tokens in groups at 0 or 1"];
    G.fill(parts.sources.body, G.el("div", { class: "scroll" }, G.el("table", { class: "plain stack" },
      G.el("thead", {}, G.el("tr", {}, titles.map((title) => G.el("th", { scope: "col" }, title)))),
      G.el("tbody", {}, rows.map((cells) => G.el("tr", {}, cells.map((cell, at) => G.el("td", { data: { label: titles[at] } }, cell))))))));
    parts.sources.say(null);
    parts.sources.note(`About ${G.about(ctx, ctx.step)}. Failed and solved by the threshold of 0.5; the chart above counts rewards that do not differ.`);
  }

  const PART = "reward/part/";
  const MOST_PARTS = 8;

  function rewardParts(ctx) {
    const names = new Set(ctx.runs.flatMap((run) => Object.keys(run.table.columns).filter((name) => name.startsWith(PART))));
    return [...names].slice(0, MOST_PARTS).map((name) => ({ name, label: G.plotText(name.slice(PART.length), 30) }));
  }

  function update(ctx) {
    const colours = G.theme.colours();
    G.stacked(parts.kinds, ctx, [
      { name: "groups/all_failed", label: "all failed", color: colours.series[1] }, { name: "groups/mixed", label: "mixed", color: colours.series[0] },
      { name: "groups/all_solved", label: "all solved", color: colours.series[2] }, { name: "groups/unscored", label: "without a score", color: colours.series[6] },
    ], { unit: "share of groups", chosen: true, title: "Groups by outcome", top: 1 });
    G.lines(parts.idle, ctx, [{ name: "groups/idle_tokens_share", label: "idle tokens" }], { unit: "share of tokens", chosen: true, yaxis: { range: [0, 1.02] } });
    G.lines(parts.means, ctx, [{ name: "length/mean_correct", label: "reward > 0.5", slot: 2 }, { name: "length/mean_wrong", label: "up to 0.5", slot: 1 }], { unit: "tokens", chosen: true, free: true });
    G.lines(parts.ends, ctx, [{ name: "length/truncated_share", label: "cut at the limit", slot: 1 }, { name: "length/empty_share", label: "empty", slot: 6 }, { name: "verifier/failed_share", label: "no verdict", slot: 3 }], { unit: "share", chosen: true });
    G.lines(parts.reward, ctx, rewardParts(ctx), { unit: "mean", chosen: true, free: true, missing: "The verifier reports no parts." });
    loadUnits(
      G.store.units(ctx.first.id, ctx.step),
      (units) => {
        const groups = groupsOf(units);
        difficulty(ctx, groups);
        lengths(ctx, units);
        sources(ctx, groups);
      },
      (error) => [parts.difficulty, parts.lengths, parts.sources].forEach((panel) => panel.say(error.message)),
    );
  }

  G.view({ key: "groups", title: "Groups and data", usesSteps: "responses", names: NAMES, mount, update, lead: "Only groups whose rewards differ teach anything." });
})();
