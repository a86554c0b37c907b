/* The list of runs: one name opens a run, the box beside it lays it over the others. */
(function () {
  "use strict";
  const G = window.G;
  const SEARCH_FROM = 9; // runs: fewer are seen at a glance
  const slots = new Map(); // run id -> number of its colour, kept while the page is open
  let answer = null;
  let wanted = "";

  /* The lowest number that no other chosen run has; a run keeps what it had if that is free. */
  function assign(ids) {
    const taken = new Set();
    for (const id of ids) {
      let slot = slots.get(id);
      if (slot === undefined || taken.has(slot)) slot = G.range(ids.length + taken.size + 1).find((at) => !taken.has(at) && !held(at, ids, id));
      slots.set(id, slot);
      taken.add(slot);
    }
  }

  const held = (slot, ids, but) => ids.some((id) => id !== but && slots.get(id) === slot);

  function swatch(id) {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    line.setAttribute("viewBox", "0 0 26 8");
    line.setAttribute("class", "swatch");
    line.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", "M0 4H26");
    path.setAttribute("stroke", G.theme.series(slots.get(id)));
    path.setAttribute("stroke-width", "3");
    path.setAttribute("stroke-dasharray", { solid: "none", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 4" }[G.theme.dash(slots.get(id))]);
    line.append(path);
    return line;
  }

  function toggle(id, on) {
    const chosen = G.state.runs().filter((one) => one !== id);
    G.state.set({ runs: (on ? chosen.concat(id) : chosen).join(",") || id, row: null });
  }

  const MARK = { running: "\u25cf", finished: "\u2713", interrupted: "\u25a0", broken: "!", empty: "\u25cb" };

  G.statusPill = (status) =>
    G.el("span", { class: `pill ${status}`, tabindex: "0", data: { define: "status", metric: "status", value: status } }, `${MARK[status] || "?"} ${status}`);

  function item(run) {
    const chosen = G.state.runs().includes(run.id);
    const box = G.el("input", {
      type: "checkbox", "aria-label": `lay ${run.name} over the others`,
      on: { change: (event) => toggle(run.id, event.target.checked) },
    });
    box.checked = chosen;
    const steps = run.total_steps ? `${run.step} of ${run.total_steps}` : String(run.step);
    const facts = [`step ${steps}`, G.isNumber(run.reward) ? `reward ${G.two(run.reward)}` : null, run.num_alarms ? G.plural(run.num_alarms, "alarm") : null];
    const label = G.el("span", { class: "run-name" }, G.oneLine(run.name, 80));
    const open = G.el(
      "button",
      { type: "button", class: "run-open", title: G.oneLine(run.problem || run.name, 400), "aria-pressed": String(chosen), on: { click: () => G.openRun(run.id) } },
      label,
      G.el("span", { class: "run-facts" }, G.el("span", { class: `mark ${run.status}` }, `${MARK[run.status] || "?"} ${run.status}`), " \u00b7 " + facts.filter(Boolean).map(G.together).join(" \u00b7 ")),
    );
    return G.el("li", { class: chosen ? "chosen" : "", data: { run: run.id } }, box, chosen ? swatch(run.id) : G.el("span", { class: "swatch" }), open);
  }

  function list() {
    const text = wanted.toLowerCase();
    const found = answer.runs.filter((run) => run.name.toLowerCase().includes(text));
    const items = found.map(item);
    return items.length ? G.el("ul", {}, items) : G.el("p", { class: "words" }, "No run has that in its name.");
  }

  function render(news) {
    if (news) answer = news;
    if (!answer) return;
    assign(G.state.runs());
    const root = document.getElementById("runs");
    if (!root.firstChild) root.append(G.el("div", { class: "runs-head" }), G.el("div", { class: "runs-list" }));
    const [head, body] = root.children;
    G.fillOnce(head, `${answer.folder} ${answer.runs.length >= SEARCH_FROM}`, () => [
      G.el("h2", {}, "Runs"),
      answer.runs.length >= SEARCH_FROM
        ? G.el("input", { type: "search", placeholder: "name", "aria-label": "Runs whose name has", on: { input: (event) => ((wanted = event.target.value), render()) } })
        : null,
    ]);
    const key = JSON.stringify([answer.runs, G.state.runs(), wanted, document.documentElement.dataset.theme]);
    const focused = body.contains(document.activeElement) ? focusOf(document.activeElement) : null;
    G.fillOnce(body, key, list);
    if (focused) refocus(body, focused);
  }

  const focusOf = (node) => ({ run: node.closest("li").dataset.run, tag: node.tagName });
  function refocus(body, { run, tag }) {
    const node = body.querySelector(`li[data-run="${run}"] ${tag}`);
    if (node) node.focus();
  }

  /* Which line is which run, above the charts, where several lie over one another. */
  function legend(runs) {
    const node = document.getElementById("legend");
    node.hidden = runs.length < 2;
    const key = JSON.stringify([runs.map((run) => [run.id, run.overview.name]), document.documentElement.dataset.theme]);
    G.fillOnce(node, key, () => runs.map((run) => G.el("span", {}, swatch(run.id), G.oneLine(run.overview.name, 40))));
  }

  G.openRun = function (id) {
    G.state.set({ runs: id, row: null, step: null, range: null, against: null });
    document.body.classList.remove("runs-open");
  };

  G.runs = { render, legend, slot: (id) => slots.get(id) || 0, assign, answer: () => answer, find: (id) => answer && answer.runs.find((run) => run.id === id) };
})();
