/* View 6: the engine gap. */
(function () {
  "use strict";
  const G = window.G;
  const parts = {};
  const NAMES = ["gap/*", "gate/*", "clip/low", "clip/high"];
  const SAFE = { bias: 0.1, noise: 0.3 }; // shares of the narrower side of the band at which the gate opens

  function mount(section) {
    parts.words = G.el("p", { class: "verdict level", tabindex: "0", data: { define: "gap/log_s_mean,gap/log_s_std" } });
    parts.figures = G.el("div", { class: "figures small" });
    section.append(parts.words, parts.figures);
    const grid = G.grid(section);
    parts.response = G.panel(grid, { title: "Gap of a response beside the range", chart: "gap_response", define: ["gap/log_s_mean", "gap/log_s_std"], wide: true });
    parts.mean = G.panel(grid, { title: "Mean gap of a response", chart: "gap_mean", define: "gap/log_s_mean" });
    parts.token = G.panel(grid, { title: "Gap of single tokens", chart: "gap_token", define: "gap/token_std" });
    parts.gate = G.panel(grid, { title: "The gate: gap over the narrower side", chart: "gate", define: ["gate/bias", "gate/noise"] });
    parts.open = G.panel(grid, { title: "Gate open", chart: "gate_open", define: "gate/open" });
    parts.missing = G.panel(grid, { title: "Tokens without an engine log-prob", chart: "gap_missing", define: "gap/missing" });
    parts.kept = G.panel(grid, { title: "Probability that top-k and top-p kept", chart: "kept_mass", define: "gap/kept_mass" });
  }

  function narrower(ctx) {
    const { band, objective } = ctx.first.overview;
    if (!band || band.low === null || (objective && objective.unit === "token")) return null;
    const sides = G.cut.bounds(band, 1).map(Math.abs).filter(Number.isFinite);
    return band.form === "length_fair" || !sides.length ? null : Math.min(...sides);
  }

  function words(ctx, bias, noise) {
    if (!G.isNumber(bias) && !G.isNumber(noise)) return "No engine gap is recorded: the engine gave no log-probs, or no step is recorded yet.";
    const side = narrower(ctx);
    const level = `the engine's log-probs differ from the trainer's by ${G.short(Math.abs(bias))} nats on average, with a spread of ${G.short(noise)}`;
    if (side === null) return `Per response, ${level}.`;
    const small = Math.abs(bias) <= SAFE.bias * side && noise <= SAFE.noise * side;
    const times = `${G.short((100 * Math.abs(bias)) / side, 2)} % and ${G.short((100 * noise) / side, 2)} % of the range's narrower side`;
    return `Per response, ${level}: ${times}. ${small ? "That is within the limits of 10 % and 30 %." : "That is above the limits of 10 % and 30 %: engine log-probs as old ones would shift the ratios."}`;
  }

  function update(ctx) {
    const last = (name) => G.last(ctx.first.table.columns[name]);
    const { step } = ctx.first.overview;
    const named = ["gap/log_s_mean", "gap/log_s_std", "gap/token_std", "gap/token_max_abs", "gap/missing"];
    const labels = ["Mean, response", "Spread, response", "Spread, token", "Largest, token", "Tokens without one"];
    G.fill(parts.words, words(ctx, last(named[0]), last(named[1])));
    G.fillOnce(parts.figures, JSON.stringify(named.map(last)) + step, () => named.map((name, at) => G.figure(labels[at], G.number(name, last(name), { step }), at < 4 ? "nats" : "of the step")));
    charts(ctx);
  }

  function charts(ctx) {
    const none = "No engine gap is recorded: the engine gave no log-probs.";
    G.lines(parts.response, ctx, [
      { name: "gap/log_s_std", label: "spread of the gap", slot: 0 }, { name: "clip/low", label: "range low", slot: 6, dash: "dash" }, { name: "clip/high", label: "range high", slot: 6, dash: "dot" },
    ], { unit: "nats per token", log: true, dtick: 1, alarms: true, missing: none });
    parts.response.note("The gap must stay far below the range: a tenth of it is the limit for the mean, a third for the spread.");
    G.lines(parts.mean, ctx, [{ name: "gap/log_s_mean", label: "mean gap", slot: 1 }], { unit: "nats per token", free: true, missing: none });
    G.lines(parts.token, ctx, [{ name: "gap/token_std", label: "spread", slot: 0 }, { name: "gap/token_max_abs", label: "largest", slot: 1 }], { unit: "nats", log: true, dtick: 1, missing: none });
    const shut = "No gate is recorded: with one minibatch a step nothing is compared.";
    G.lines(parts.gate, ctx, [{ name: "gate/bias", label: "bias", slot: 1 }, { name: "gate/noise", label: "noise", slot: 0 }], { unit: "share of the narrower side", free: true, missing: shut });
    parts.gate.note("Open at |bias| up to 0.1 and noise up to 0.3.");
    G.lines(parts.open, ctx, [{ name: "gate/open", label: "open" }], { unit: "1 open, 0 shut", missing: shut, yaxis: { range: [-0.05, 1.1], tickvals: [0, 1] } });
    G.lines(parts.missing, ctx, [{ name: "gap/missing", label: "missing" }], { unit: "tokens", missing: none });
    G.lines(parts.kept, ctx, [{ name: "gap/kept_mass", label: "mean" }, { name: "gap/kept_mass_min", label: "smallest" }], {
      unit: "probability", yaxis: { range: [0, 1.04] }, missing: "Not recorded: neither top\u2011k nor top\u2011p is on, so responses come from the policy itself.",
    });
  }

  G.view({ key: "gap", title: "Engine gap", names: NAMES, mount, update, lead: "What the engine that samples computes differently from the trainer, on the same tokens and weights." });
})();
