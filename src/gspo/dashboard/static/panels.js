/* A panel: a titled card with a chart or other content, its definition, and room for words. */
(function () {
  "use strict";
  const G = window.G;

  /* options: title, chart (name of the chart), define (names), note (a sentence), wide, tall.
     Gives {root, body, chart, controls, note(text), say(text)}; `say` replaces the chart by words. */
  G.panel = function (parent, options) {
    const title = G.el("h3", {}, options.title, "\u00a0", G.info(options.define, options.explain));
    const controls = G.el("div", { class: "controls" });
    const chart = options.chart
      ? G.el("div", {
          class: "chart" + (options.tall ? " tall" : ""),
          role: "img",
          tabindex: "0",
          "aria-label": options.title,
          data: { chart: options.chart, define: [].concat(options.define || []).join(",") },
        })
      : null;
    const words = G.el("p", { class: "words", hidden: true });
    const body = G.el("div", { class: "panel-body" });
    const note = G.el("p", { class: "note" }, options.note || null);
    note.hidden = !options.note;
    const root = G.el("div", { class: "panel" + (options.wide ? " wide" : "") }, G.el("div", { class: "panel-head" }, title, controls), words, chart, body, note);
    parent.append(root);
    return {
      root,
      body,
      chart,
      controls,
      note(...parts) {
        note.hidden = parts.length === 0 || (parts.length === 1 && !parts[0]);
        G.fill(note, parts);
      },
      /* Words in place of the content; null brings the content back. */
      say(text) {
        words.hidden = !text;
        if (chart) chart.hidden = Boolean(text);
        body.hidden = Boolean(text);
        G.fill(words, text ? G.sentence(text) : null);
      },
    };
  };

  G.grid = function (parent, name) {
    const grid = G.el("div", { class: "grid " + (name || "") });
    parent.append(grid);
    return grid;
  };

  G.viewHead = function (section, view) {
    section.append(G.el("header", { class: "view-head" }, G.el("h2", { id: `title-${view.key}` }, view.title), G.el("p", { class: "lead" }, view.lead)));
  };

  /* "about demo, step 12": which run a panel of one step is about. */
  G.about = function (ctx, step) {
    const name = G.oneLine(ctx.first.overview.name, 40);
    const only = ctx.runs.length > 1 ? `${name} (the first run chosen), ` : "";
    return `${only}step ${step}`;
  };
})();
