/* The table of responses: filters above, rows, pages below. */
(function () {
  "use strict";
  const G = window.G;
  const PAGE = 25; // rows

  /* Key in the URL -> name in the query. */
  const FILTERS = {
    q: "search", finish: "finish", cut: "cut", adv: "advantage", verdict: "verdict", mb: "minibatch",
    rmin: "reward_min", rmax: "reward_max", lmin: "length_min", lmax: "length_max", sort: "sort", desc: "descending",
  };

  function query() {
    const found = { limit: PAGE, offset: PAGE * (G.state.number("page") || 0) };
    for (const [key, name] of Object.entries(FILTERS)) if (G.state.get(key)) found[name] = G.state.get(key);
    return found;
  }

  const set = (key, value) => G.state.set({ [key]: value || null, page: null });

  function select(key, label, options) {
    const node = G.el("select", { on: { change: () => set(key, node.value) } }, options.map(([value, text]) => G.el("option", { value }, text)));
    return { key, node, root: G.el("label", { class: "filter" }, G.el("span", {}, label), node) };
  }

  function between(low, high, label, step) {
    const field = (key, word) => {
      const node = G.el("input", { type: "number", step, placeholder: word, "aria-label": `${label}, ${word}`, on: { change: () => set(key, node.value) } });
      return { key, node };
    };
    const both = [field(low, "from"), field(high, "to")];
    return { both, root: G.el("div", { class: "filter" }, G.el("span", {}, label), G.el("span", { class: "pair-of-fields" }, both[0].node, both[1].node)) };
  }

  function filters() {
    const search = G.el("input", { type: "search", placeholder: "in prompt, response, reason (press /)", "aria-label": "Search the responses", on: { input: G.debounce(() => set("q", search.value), 200) } });
    const any = ["", "any"];
    const selects = [
      select("adv", "advantage", [any, ["positive", "A > 0"], ["negative", "A < 0"], ["zero", "A = 0"]]),
      select("cut", "cut side", [any, ["any", "cut"], ["low", "low"], ["high", "high"], ["none", "not cut"]]),
      select("finish", "finish", [any, ["stop", "stop"], ["length", "length"], ["failed", "failed"]]),
      select("verdict", "verdict", [any, ["scored", "scored"], ["failed", "failed, with a reason"]]),
    ];
    // On narrow screens rows are cards without headings to sort by.
    const sort = select("sort", "sort by", [["", "row"], ...["group", "reward", "advantage", "length", "log_s"].map((name) => [name, name.replace("_", " ")])]);
    sort.root.classList.add("narrow");
    const reward = between("rmin", "rmax", "reward", "any");
    const length = between("lmin", "lmax", "length", "1");
    const fields = [{ key: "q", node: search }, sort, ...selects, ...reward.both, ...length.both];
    const none = Object.fromEntries([...Object.keys(FILTERS), "page", "group"].map((key) => [key, null]));
    const clear = G.button("Clear", () => G.state.set(none));
    const root = G.el("div", { class: "filters" }, G.el("label", { class: "filter wide" }, G.el("span", {}, "search"), search), selects.map((one) => one.root), sort.root, reward.root, length.root, G.el("div", { class: "filter" }, clear));
    const sync = () => fields.forEach(({ key, node }) => { if (document.activeElement !== node) node.value = G.state.get(key); });
    return { root, sync };
  }

  const cutSide = (row) => (row.cut_low > 0 ? "low" : row.cut_high > 0 ? "high" : G.NONE);
  const plain = (row, name, show) => G.number(name, row[name], { show, plain: true });

  const COLUMNS = [
    { title: "row", define: "row", sort: "row", cell: (row) => G.button(String(row.row), () => choose(row), { class: "link", "aria-label": `open row ${row.row} and its group` }) },
    { title: "group", define: "group", sort: "group", cell: (row) => `${row.group}.${row.sample}` },
    { title: "prompt", define: "prompt", wide: true, cell: (row) => G.oneLine(row.prompt, 90) },
    { title: "response", define: "text", wide: true, cell: (row) => G.oneLine(row.text, 110) },
    { title: "reward", define: "reward", sort: "reward", cell: (row) => plain(row, "reward", G.two) },
    { title: "A", define: "advantage", sort: "advantage", cell: (row) => plain(row, "advantage", (value) => G.signed(value, G.two)) },
    { title: "tokens", define: "length", sort: "length", cell: (row) => plain(row, "length") },
    { title: "log s", define: "log_s", sort: "log_s", cell: (row) => plain(row, "log_s") },
    { title: "cut", define: "cut", cell: cutSide },
    { title: "mb", define: "minibatch", cell: (row) => plain(row, "minibatch") },
    { title: "finish", define: "finish", cell: (row) => G.oneLine(row.finish, 20) },
    { title: "reason", define: "failure", cell: (row) => (row.failure ? G.oneLine(row.failure, 80) : row.skipped ? G.el("span", { class: "soft" }, G.oneLine(row.skipped, 40)) : G.NONE) },
  ];

  const choose = (row) => G.state.set({ step: G.currentStep(), row: row.row, group: row.group });

  function heading(column) {
    if (!column.sort) return G.el("th", { scope: "col", tabindex: "0", data: { define: column.define } }, column.title);
    const sorted = (G.state.get("sort") || "row") === column.sort;
    const down = G.state.get("desc") === "1";
    const order = sorted ? (down ? "descending" : "ascending") : "none";
    const turn = () => G.state.set({ sort: column.sort, desc: sorted && !down ? "1" : null, page: null });
    return G.el("th", { scope: "col", "aria-sort": order }, G.button([column.title, sorted ? (down ? " \u2193" : " \u2191") : ""], turn, { class: "sort", data: { define: column.define } }));
  }

  function body(answer) {
    return answer.rows.map((row) => {
      const node = G.el(
        "tr",
        { class: row.row === G.state.row() ? "chosen" : "", data: { row: String(row.row) } },
        COLUMNS.map((column) => G.el("td", { class: column.wide ? "wide" : "", data: { label: column.title } }, column.cell(row))),
      );
      node.addEventListener("click", () => choose(row));
      return node;
    });
  }

  function table(answer) {
    return G.el("table", { class: "responses stack" }, G.el("thead", {}, G.el("tr", {}, COLUMNS.map(heading))), G.el("tbody", {}, body(answer)));
  }

  function pager(answer) {
    const page = G.state.number("page") || 0;
    const last = Math.max(0, Math.ceil(answer.matched / PAGE) - 1);
    const to = (next) => G.state.set({ page: next || null });
    const back = G.button("\u2190 back", () => to(page - 1));
    const on = G.button("on \u2192", () => to(page + 1));
    back.disabled = page <= 0;
    on.disabled = page >= last;
    const from = answer.rows.length ? answer.offset + 1 : 0;
    const words = `${from} to ${answer.offset + answer.rows.length} of ${answer.matched.toLocaleString("en")}` + (answer.matched < answer.total ? ` (of ${answer.total.toLocaleString("en")} in the step)` : "");
    return [back, G.el("span", { class: "soft" }, words), on];
  }

  G.rolloutsTable = { filters, query, table, pager };
})();
