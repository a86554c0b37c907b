/* A number on the page: what is shown, the exact value beside it, and its definition. */
(function () {
  "use strict";
  const G = window.G;

  /* options: show (formatter), step, define (name of the definition, if not the metric's own),
     unit (word after the number), plain (no focus stop of its own: in tables the heading has it). */
  G.number = function (name, value, options) {
    const { show, step, define, unit, plain } = options || {};
    const text = (show || G.short)(value);
    return G.el(
      "span",
      {
        class: "number",
        tabindex: plain ? null : "0",
        data: { metric: name, value: G.isNumber(value) ? String(value) : "", step: step ?? null, define: define || name },
      },
      text,
      unit && G.isNumber(value) ? G.el("small", {}, " " + unit) : null,
    );
  };

  /* A large number with its name above and a line of context below. */
  G.figure = function (label, number, context, tone) {
    return G.el(
      "div",
      { class: "figure" + (tone ? " " + tone : "") },
      G.el("div", { class: "figure-label" }, label),
      G.el("div", { class: "figure-value" }, number),
      context ? G.el("div", { class: "figure-context" }, context) : null,
    );
  };

  G.info = function (define, note) {
    return G.button("i", () => {}, {
      class: "info",
      "aria-label": "What is this?",
      data: { define: [].concat(define || []).join(","), note: note || null },
    });
  };

  /* A choice among a few: real buttons, one pressed. */
  G.choice = function (label, options, chosen, choose) {
    return G.el(
      "div",
      { class: "choice", role: "group", "aria-label": label },
      options.map(([value, text]) =>
        G.button(text, () => choose(value), { "aria-pressed": String(value === chosen), data: { choice: value } }),
      ),
    );
  };
})();
