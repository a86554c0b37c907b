/* The range in force over the steps, and every change that clip: auto made, with its evidence. */
(function () {
  "use strict";
  const G = window.G;

  const WORDS = { clip_fixed: "first measured", refit: "measured again", clip_rescaled: "scaled with the learning rate" };

  const COLUMNS = [
    ["step", (event) => G.short(event.step)],
    ["what", (event) => `${event.kind}: ${WORDS[event.kind] || ""}`],
    ["phase", (event) => event.phase],
    ["low", (event) => change(event.previous_low, event.low)],
    ["high", (event) => change(event.previous_high, event.high)],
    ["decided by", (event) => (event.low_held ? `${event.low_held} / ${event.high_held}` : null)],
    ["cut before, wanted", (event) => (G.isNumber(event.cut_share) ? `${G.share(event.measured_share)}, ${G.share(event.cut_share)}` : null)],
    ["responses", (event) => (G.isNumber(event.num_signal) ? `${event.num_signal} in ${G.plural(event.measured_steps || 0, "step")}` : null)],
  ];

  const change = (from, to) => (G.isNumber(from) ? `${G.short(from)} \u2192 ${G.short(to)}` : G.short(to));

  function against(event) {
    const sides = [event.low_against_advantage && "low", event.high_against_advantage && "high"].filter(Boolean);
    return sides.length ? G.el("div", { class: "warn" }, `quantile on the wrong side of 0: ${sides.join(", ")}`) : null;
  }

  function table(events) {
    const head = COLUMNS.map(([title]) => G.el("th", { scope: "col" }, title));
    const rows = events.map((event) =>
      G.el("tr", {}, COLUMNS.map(([title, value], at) => G.el("td", { data: { label: title } }, G.oneLine(value(event) ?? G.NONE, 80), at === 1 ? against(event) : null))),
    );
    return G.el("div", { class: "scroll" }, G.el("table", { class: "plain stack" }, G.el("thead", {}, G.el("tr", {}, head)), G.el("tbody", {}, rows)));
  }

  function render(node, ctx) {
    const { overview } = ctx.first;
    const events = G.clipEvents(overview);
    const auto = overview.objective && overview.objective.form === "auto";
    G.fillOnce(node, JSON.stringify([overview.id, events]), () =>
      events.length
        ? table(events)
        : G.el("p", { class: "words" }, auto ? "clip: auto has not fixed a range yet: it is measuring under a provisional band." : "The range of this run is given by its recipe, not measured: there are no events."),
    );
  }

  G.trustEvents = { render };
})();
