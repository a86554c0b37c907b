/* The slider: what another range would cut of the chosen step's responses, fixed and length-fair. */
(function () {
  "use strict";
  const G = window.G;
  const SMALLEST = -5; // log10: the floor of clip: auto, ten times the float32 noise of a log-prob
  const FOR_COUNTS = 64; // pixels a length needs to have its count below it
  const LARGEST = 0; // log10: a distance of 1; below ratio 1 there is nothing further down
  const parts = {};
  let latest = null; // {units, rows, start, key}

  /* The band in force as distances from ratio 1; a length-fair one at the median length. */
  function asFixed(band, units, rows) {
    if (!band || band.low === null || band.high === null) return { form: "range", low: 0.0003, high: 0.0004 };
    if (band.form === "range") return band;
    const length = G.fit.quantile(rows.map((row) => units.length[row]), 0.5) || 1;
    const [low, high] = G.cut.bounds(band, length);
    return { form: "range", low: -Math.expm1(low), high: Math.expm1(high) };
  }

  function chosen() {
    const [low, high] = G.state.get("range").split(",").map(Number);
    const given = low > 0 && high > 0;
    return given ? { form: "range", low: Math.min(1, low), high } : latest.start;
  }

  function choose(changes) {
    const band = { ...chosen(), ...changes };
    G.state.set({ range: `${Number(band.low.toPrecision(4))},${Number(band.high.toPrecision(4))}` });
  }

  function control(side, words) {
    const slider = G.el("input", {
      type: "range", min: String(SMALLEST), max: String(LARGEST), step: "0.01", id: `range-${side}`, "aria-label": `range, ${words}`,
      on: { input: () => choose({ [side]: 10 ** Number(slider.value) }) },
    });
    const number = G.el("input", {
      type: "number", step: "any", min: "0.00001", max: "1", "aria-label": `range, ${words}, as a number`,
      on: { change: () => Number(number.value) > 0 && choose({ [side]: Math.min(1, Number(number.value)) }) },
    });
    return { slider, number, row: G.el("div", { class: "range-row" }, G.el("label", { for: `range-${side}` }, words), slider, number) };
  }

  function mount(panel) {
    parts.panel = panel;
    parts.low = control("low", "low (below ratio 1)");
    parts.high = control("high", "high (above ratio 1)");
    parts.reset = G.button("Back to the range in force", () => G.state.set({ range: null }));
    parts.result = G.el("div", { class: "figures small" });
    const form = G.el("div", { class: "range-form" }, parts.low.row, parts.high.row, G.el("div", { class: "range-row" }, parts.reset));
    panel.chart.before(form, parts.result);
    parts.form = form;
  }

  function set(control_, value) {
    const at = Math.min(LARGEST, Math.max(SMALLEST, Math.log10(value)));
    if (document.activeElement !== control_.slider || Math.abs(Number(control_.slider.value) - at) > 0.011) control_.slider.value = String(at);
    if (document.activeElement !== control_.number) control_.number.value = String(Number(value.toPrecision(4)));
    control_.slider.setAttribute("aria-valuetext", G.short(value));
  }

  function result(label, name, tally, words) {
    const number = G.number(name, tally.share, { show: G.share, define: "what_if", step: latest.step });
    const context = `${tally.low} low + ${tally.high} high of ${tally.total}`;
    return G.figure(label, number, [context, words ? G.el("br") : null, words]);
  }

  function show() {
    const { units, rows, recorded } = latest;
    const fixed = chosen();
    const fair = G.cut.lengthFair(fixed, units, rows);
    set(parts.low, fixed.low);
    set(parts.high, fixed.high);
    parts.reset.disabled = !G.state.get("range");
    const tally = G.cut.tally(fixed, units, rows);
    const tallyFair = fair && G.cut.tally(fair, units, rows);
    G.fill(
      parts.result,
      result("Fixed range would cut", "what_if/fixed", tally, `ratio in [${(1 - fixed.low).toPrecision(6)}, ${(1 + fixed.high).toPrecision(6)}]`),
      fair ? result("Length-fair, same share", "what_if/length_fair", tallyFair, `\u2212${G.short(fair.low)}/\u221aL to ${G.short(fair.high)}/\u221aL nats`) : null,
      G.figure("The run cut", G.number("clip/cut_share", recorded, { show: G.share, step: latest.step }), `recorded at step ${latest.step}`),
    );
    draw(fixed, fair);
  }

  function draw(fixed, fair) {
    const { units, rows } = latest;
    const buckets = G.cut.byBucket(units, rows);
    const share = (band, one) => (band ? G.cut.tally(band, units, one.rows).share : null);
    const cut = (one) => one.rows.filter((row) => units.cut_low[row] + units.cut_high[row] > 0).length / one.rows.length;
    const make = () => {
      const colours = G.theme.colours();
      const room = parts.panel.chart.clientWidth / buckets.length >= FOR_COUNTS;
      const x = buckets.map((one) => (room ? `${one.name}<br>n = ${one.rows.length}` : one.name));
      const trace = (name, y, color, shape) => ({
        type: "bar", name, x, y, customdata: buckets.map((one) => one.rows.length), marker: { color, pattern: G.hatch(shape) },
        hovertemplate: `%{y:.3f} of %{customdata}<extra>${name}</extra>`,
      });
      return {
        traces: [
          trace("fixed", buckets.map((one) => share(fixed, one)), colours.series[0], ""),
          trace("length-fair", buckets.map((one) => share(fair, one)), colours.series[2], "/"),
          trace("the run", buckets.map(cut), colours.none, ""),
        ],
        layout: {
          barmode: "group", bargap: Math.max(0.35, 0.9 - 0.14 * buckets.length), bargroupgap: 0.08, margin: { l: 52, r: 14, t: 18, b: 56 },
          xaxis: { title: "response length, tokens", type: "category", ...(room ? {} : { tickfont: { size: 9, color: colours.soft } }) }, yaxis: { title: "share cut", rangemode: "tozero", nticks: 6 },
        },
      };
    };
    const said = buckets.map((one) => `${one.name} tokens: ${G.share(share(fixed, one))} fixed, ${G.share(share(fair, one))} length-fair`);
    G.draw(parts.panel, make, { summary: `Share that would be cut by length. ${said.join("; ")}` });
  }

  /* units: of the step; null with words where they cannot be had. recorded: clip/cut_share of the step. */
  function update(ctx, units, band, recorded) {
    const rows = G.cut.offPolicy(units);
    parts.form.hidden = parts.result.hidden = rows.length === 0;
    if (!rows.length) return parts.panel.say("No response of this step has A \u2260 0, a minibatch from 2 on, and a measured log s: the clip has nothing to decide.");
    latest = { units, rows, start: asFixed(band, units, rows), recorded, step: ctx.step };
    parts.panel.say(null);
    show();
    const token = ctx.first.overview.objective && ctx.first.overview.objective.unit === "token";
    parts.panel.note(
      token
        ? "This run's clip acts on single tokens; the slider shows what a range on whole responses would cut of them."
        : `About ${G.about(ctx, ctx.step)}. Under another range the updates would have been others, so this says what the range cuts, not what the run would become.`,
    );
    return null;
  }

  function fail(message) {
    parts.form.hidden = parts.result.hidden = true;
    parts.panel.say(message);
    parts.panel.note(null);
  }

  G.trustRange = { mount, update, fail };
})();
