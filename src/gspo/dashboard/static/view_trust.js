/* View 2: the trust region. */
(function () {
  "use strict";
  const G = window.G;
  const parts = {};
  const loadUnits = G.latest();
  const loadHumps = G.latest();
  let window_ = "all"; // of the panel about lengths: one, recent, all
  let shown = null; // {units, ctx}: what the step's panels show now

  const NAMES = ["clip/*", "log_s/mean/len_*", "log_s/std/len_*", "log_s/count/len_*", "log_s/count_mb*", "log_s/std", "log_s/mean"];

  function mount(section) {
    const grid = G.grid(section);
    parts.hump = G.panel(grid, { title: "log s of the step, and the band", chart: "log_s_histogram", define: "log_s/histogram", wide: true, tall: true });
    parts.minibatches = G.el("div", {});
    parts.hump.controls.append(parts.minibatches);
    parts.range = G.panel(grid, { title: "Another range: what would it cut?", chart: "what_if", define: "what_if", wide: true });
    G.trustRange.mount(parts.range);
    parts.time = G.panel(grid, { title: "log s over time, and the band", chart: "log_s_over_time", define: "log_s/histogram", wide: true, tall: true });
    parts.sides = G.panel(grid, { title: "Cut share by side", chart: "cut_by_side", define: ["clip/cut_low", "clip/cut_share"] });
    parts.signs = G.panel(grid, { title: "Cut share by sign of the advantage", chart: "cut_by_sign", define: "clip/cut_share_positive" });
    parts.batches = G.panel(grid, { title: "Cut share by minibatch", chart: "cut_by_minibatch", define: "clip/cut_share_mb1" });
    parts.outside = G.panel(grid, { title: "Outside the band, cut or not", chart: "outside", define: "clip/outside_share" });
    parts.heat = G.panel(grid, { title: "Cut share by length, over steps", chart: "cut_by_length", define: "clip/cut_share/len_16-31", wide: true });
    parts.length = G.panel(grid, { title: "Mean and spread of log s by length", chart: "log_s_by_length", define: ["log_s/std/len_16-31", "fitted_exponent"] });
    parts.clip = G.panel(grid, { title: "The range in force", chart: "clip_range", define: "clip/low" });
    const events = G.panel(grid, { title: "What clip: auto did", define: "clip_event", wide: true });
    parts.events = events.body;
    parts.numbers = G.el("div", { class: "figures small" });
    parts.hump.root.insertBefore(parts.numbers, parts.hump.chart);
  }

  /* The band of one step: as recorded, or the one that the recipe gives. */
  function bandAt(ctx) {
    const { table, overview } = ctx.first;
    const at = table.step.indexOf(ctx.step);
    const value = (name) => (table.columns[name] || [])[at];
    const form = overview.band && overview.band.form;
    if (G.isNumber(value("clip/low")) && form !== "length_fair") return { form: form === "log" ? "log" : "range", low: value("clip/low"), high: value("clip/high") };
    return form === "length_fair" || form === "log" ? overview.band : null;
  }

  function minibatchChoice(ctx, units) {
    const numbers = units ? [...new Set(units.minibatch.filter((one) => one !== null))].sort((a, b) => a - b) : [];
    const chosen = G.state.number("mb") || 0;
    G.fillOnce(parts.minibatches, JSON.stringify([numbers, chosen]), () =>
      numbers.length > 1
        ? G.choice("Minibatch", [[0, "2 and later"], ...numbers.map((one) => [one, String(one)])], chosen, (mb) => G.state.set({ mb: mb || null }))
        : null,
    );
  }

  function at(ctx, name) {
    const index = ctx.first.table.step.indexOf(ctx.step);
    return (ctx.first.table.columns[name] || [])[index];
  }

  function numbers(ctx) {
    const one = (label, name, show) => G.figure(label, G.number(name, at(ctx, name), { show, step: ctx.step }));
    G.fillOnce(parts.numbers, JSON.stringify([ctx.first.id, ctx.step, ctx.first.table.version]), () => [
      one("Cut", "clip/cut_share", G.share),
      one("Low side", "clip/cut_low", G.share),
      one("High side", "clip/cut_high", G.share),
      one("Spread of log s", "log_s/std", G.short),
      one("Range low", "clip/low", G.short),
      one("Range high", "clip/high", G.short),
    ]);
  }

  /* A token objective's band is about single tokens: drawn on log s it would mislead. */
  const ofResponses = (ctx) => !(ctx.first.overview.objective && ctx.first.overview.objective.unit === "token");

  function stepPanels(ctx, units) {
    shown = { units, ctx };
    minibatchChoice(ctx, units);
    const band = bandAt(ctx);
    G.trustHistogram.drawUnits(parts.hump, units, G.state.number("mb") || 0, ofResponses(ctx) ? band : null);
    parts.hump.note(`About ${G.about(ctx, ctx.step)}: responses with A \u2260 0, in bins that are equal in the logarithm on both sides of 0. ${bandWords(ctx, band)}`);
    G.trustRange.update(ctx, units, ofResponses(ctx) ? band : null, at(ctx, "clip/cut_share"));
  }

  function bandWords(ctx, band) {
    if (!ofResponses(ctx)) return "The clip of this run acts on single tokens, so no band on log s is drawn.";
    if (!band) return "No band is recorded for this step.";
    if (band.form === "length_fair") return "The band narrows as 1/\u221aL: lines for the shortest response, the darker zone for the longest.";
    return "Lines: the band in force, in nats. Outside but not cut: the advantage points the other way.";
  }

  function withoutUnits(ctx, error) {
    G.trustRange.fail(error.message);
    minibatchChoice(ctx, null);
    const found = parts.histograms;
    const row = found ? found.step.indexOf(ctx.step) : -1;
    if (row < 0) return parts.hump.say(error.message);
    G.trustHistogram.drawCounts(parts.hump, found.edges, found.counts[row], bandAt(ctx));
    parts.hump.note(`About ${G.about(ctx, ctx.step)}: the recorded counts, minibatch 2 and later. ${G.sentence(error.message)}`);
    return null;
  }

  function overSteps(ctx) {
    const wanted = ctx.first.overview.cut_share_wanted;
    const none = "No cut share is recorded: with one minibatch a step every ratio is 1 and nothing can be cut.";
    const shares = { unit: "share", chosen: true, missing: none, levels: [{ y: wanted, label: "wanted" }] };
    G.lines(parts.sides, ctx, [
      { name: "clip/cut_share", label: "both sides", slot: 6 }, { name: "clip/cut_low", label: "low: ratio below, A < 0", slot: 0 },
      { name: "clip/cut_high", label: "high: ratio above, A > 0", slot: 1 },
    ], shares);
    G.lines(parts.signs, ctx, [{ name: "clip/cut_share_positive", label: "A > 0", slot: 1 }, { name: "clip/cut_share_negative", label: "A < 0", slot: 0 }], shares);
    const count = ctx.first.overview.minibatches || 1;
    G.lines(parts.batches, ctx, G.range(Math.min(count, 8)).map((k) => ({ name: `clip/cut_share_mb${k + 1}`, label: `minibatch ${k + 1}`, slot: k })), shares);
    G.lines(parts.outside, ctx, [{ name: "clip/outside_share", label: "outside", slot: 4, dash: "dash" }, { name: "clip/cut_share", label: "cut", slot: 1 }], {
      unit: "share", chosen: true, missing: "Recorded for objectives whose clip decides about whole responses only.",
    });
    G.lines(parts.clip, ctx, [{ name: "clip/low", label: "low", slot: 0 }, { name: "clip/high", label: "high", slot: 1 }, { name: "log_s/std", label: "spread of log s", slot: 6, dash: "dot" }], {
      unit: "distance from ratio 1", log: true, dtick: 1, events: true, chosen: true, missing: "No range is recorded: a length-fair one differs by response, and an objective without a clip has none.",
    });
    G.trustLength.heat(parts.heat, ctx);
    const about = ctx.runs.length > 1 ? `About ${G.oneLine(ctx.first.overview.name, 60)}, the first run chosen. ` : "";
    parts.heat.note(`${about}Grey: no response of that length that could be cut.`);
    lengthPanel(ctx);
    G.trustEvents.render(parts.events, ctx);
  }

  function lengthPanel(ctx) {
    const options = [["one", "this step"], ["recent", "20 steps"], ["all", "all"]];
    G.fill(parts.length.controls, G.choice("Steps", options, window_, (value) => { window_ = value; lengthPanel(ctx); }));
    G.trustLength.draw(parts.length, ctx, window_);
  }

  function update(ctx) {
    numbers(ctx);
    overSteps(ctx);
    const { id, version } = ctx.first;
    loadHumps(
      G.store.histograms(id, "log_s/histogram", version, ctx.first.overview.step),
      (found) => {
        parts.histograms = found;
        G.trustHistogram.drawOverTime(parts.time, found, ctx);
        parts.time.note(`${ctx.runs.length > 1 ? `About ${G.oneLine(ctx.first.overview.name, 60)}. ` : ""}Each column is a step: the share of its responses in each bin. Lines: the range in force. Select a column to open its step.`);
      },
      (error) => parts.time.say(error.message),
    );
    loadUnits(G.store.units(id, ctx.step), (units) => stepPanels(ctx, units), (error) => withoutUnits(ctx, error));
  }

  G.view({
    key: "trust", title: "The trust region", usesSteps: "recorded", names: NAMES, mount, update,
    lead: "How far each response moved (log s), what the clip cut of it, and what another range would cut.",
  });
})();
