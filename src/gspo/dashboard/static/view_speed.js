/* View 7: speed and memory. */
(function () {
  "use strict";
  const G = window.G;
  const parts = {};
  const NAMES = ["time/*", "speed/*", "step/*", "update/*", "memory/*", "grad/*"];
  const PARTS = ["rollout", "update", "score", "judge", "publish", "other"];

  function mount(section) {
    parts.figures = G.el("div", { class: "figures small" });
    section.append(parts.figures);
    const grid = G.grid(section);
    parts.shares = G.panel(grid, { title: "Where the time of a step goes", chart: "time_shares", define: ["time_share", "time/rollout_s"], wide: true });
    parts.speed = G.panel(grid, { title: "Trained tokens per second", chart: "tokens_per_s", define: "speed/tokens_per_s" });
    parts.step = G.panel(grid, { title: "Time of a step", chart: "step_time", define: "time/step_s" });
    parts.skipped = G.panel(grid, { title: "Work that was not needed", chart: "skipped", define: ["update/skipped_responses", "update/skipped_backward"] });
    parts.memory = G.panel(grid, { title: "Peak memory", chart: "memory", define: "memory/peak_rss_gib" });
    parts.tokens = G.panel(grid, { title: "Size of a step", chart: "step_tokens", define: "step/tokens" });
    parts.bad = G.panel(grid, { title: "Optimizer steps not taken", chart: "skipped_steps", define: "update/skipped_steps" });
  }

  /* The same run with the shares of its time as columns, so that the charts over steps draw them. */
  function withShares(run) {
    const { columns } = run.table;
    const total = columns["time/step_s"] || [];
    const shares = {};
    for (const part of PARTS) {
      const own = columns[`time/${part}_s`];
      if (own) shares[`time_share/${part}`] = own.map((value, at) => (G.isNumber(value) && total[at] > 0 ? value / total[at] : null));
    }
    return { ...run, table: { ...run.table, columns: { ...columns, ...shares } } };
  }

  function figures(ctx) {
    const { columns } = ctx.first.table;
    const { step } = ctx.first.overview;
    const last = (name) => G.last(columns[name]);
    const of = (part) => (last("time/step_s") > 0 && G.isNumber(last(`time/${part}_s`)) ? last(`time/${part}_s`) / last("time/step_s") : null);
    const share = (part) => G.number(`time_share/${part}`, of(part), { show: G.percent, define: "time_share", step });
    const skipped = G.isNumber(last("update/skipped_responses")) && last("step/responses") > 0 ? `of ${G.short(last("step/responses"))} responses` : null;
    return [
      G.figure("Tokens per second", G.number("speed/tokens_per_s", last("speed/tokens_per_s"), { step }), "trained tokens, whole step"),
      G.figure("Step", G.number("time/step_s", last("time/step_s"), { show: G.duration, step }), `step ${step}`),
      G.figure("Rollout", share("rollout"), "of the step"),
      G.figure("Update", share("update"), "of the step"),
      G.figure("Skipped", G.number("update/skipped_responses", last("update/skipped_responses"), { step }), skipped),
      G.figure("Peak memory", G.number("memory/peak_rss_gib", last("memory/peak_rss_gib"), { step, unit: "GiB" }), "of the training process"),
    ];
  }

  function update(given) {
    const ctx = { ...given, runs: given.runs.map(withShares) };
    ctx.first = ctx.runs[0];
    G.fillOnce(parts.figures, JSON.stringify([ctx.first.id, ctx.first.overview.step, ctx.first.table.version]), () => figures(ctx));
    const series = PARTS.map((part, at) => ({ name: `time_share/${part}`, label: part, slot: at }));
    G.stacked(parts.shares, ctx, series, { unit: "share of the step", title: "Shares of the step's time", top: 1, missing: "No times are recorded." });
    G.lines(parts.speed, ctx, [{ name: "speed/tokens_per_s", label: "tokens per second" }], { unit: "tokens / s", smooth: true });
    G.lines(parts.step, ctx, [{ name: "time/step_s", label: "step" }], { unit: "seconds", smooth: true });
    G.lines(parts.skipped, ctx, [{ name: "update/skipped_responses", label: "not run (A = 0)", slot: 0 }, { name: "update/skipped_backward", label: "no backward (all cut)", slot: 1 }], { unit: "responses" });
    G.lines(parts.memory, ctx, [{ name: "memory/peak_rss_gib", label: "peak" }], { unit: "GiB" });
    G.lines(parts.tokens, ctx, [{ name: "step/tokens", label: "tokens" }], { unit: "tokens" });
    G.lines(parts.bad, ctx, [{ name: "update/skipped_steps", label: "not taken" }], { unit: "optimizer steps" });
  }

  G.view({ key: "speed", title: "Speed and memory", names: NAMES, mount, update, lead: "What a step costs, and what it did not have to do." });
})();
