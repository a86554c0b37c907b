/* View 8: the recipe, and how it differs from another run's. */
(function () {
  "use strict";
  const G = window.G;
  const parts = {};
  const loadText = G.latest();
  const loadOther = G.latest();

  function mount(section) {
    const grid = G.grid(section);
    parts.difference = G.panel(grid, { title: "Difference to another run", define: "difference", wide: true });
    parts.select = G.el("select", { "aria-label": "Run to compare with", on: { change: () => G.state.set({ against: parts.select.value || null }) } });
    parts.difference.controls.append(parts.select);
    parts.recipe = G.panel(grid, { title: "Recipe", explain: "recipe.yaml as the run resolved it: every setting, the defaults too." });
    parts.recipe.controls.append(G.button("Copy", copy));
    parts.info = G.panel(grid, { title: "What ran", explain: "run.json: versions, seed, digests, dtype, without paths of the machine." });
  }

  async function copy(event) {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(parts.text || "");
      G.fill(button, "Copied");
    } catch (error) {
      G.fill(button, `Not copied: ${error.message}`);
    }
    setTimeout(() => G.fill(button, "Copy"), 2000);
  }

  function options(ctx) {
    const others = (G.runs.answer() ? G.runs.answer().runs : []).filter((run) => run.id !== ctx.first.id && run.status !== "broken");
    G.fillOnce(parts.select, JSON.stringify([others.map((run) => [run.id, run.name]), ctx.first.id]), () => [
      G.el("option", { value: "" }, others.length ? "choose a run" : "there is no other run"),
      others.map((run) => G.el("option", { value: run.id }, G.oneLine(run.name, 60))),
    ]);
    const chosen = G.state.get("against") || (ctx.runs[1] ? ctx.runs[1].id : "");
    parts.select.value = chosen;
    parts.select.disabled = !others.length;
    return chosen;
  }

  const shown = (value) => (value === undefined || value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value));

  function differences(ctx, answer, other) {
    const found = answer.differences || [];
    parts.difference.say(found.length ? null : "Both recipes have the same settings.");
    if (!found.length) return;
    const titles = ["setting", G.oneLine(ctx.first.overview.name, 40), G.oneLine((G.runs.find(other) || { name: "the other" }).name, 40)];
    const rows = found.map((one) => G.el("tr", {}, G.el("th", { scope: "row" }, G.oneLine(one.key, 120)), [one.here, one.there].map((value, at) => G.el("td", { class: "anywhere", data: { label: titles[at + 1] } }, G.longText(shown(value), 200)))));
    G.fill(parts.difference.body, G.el("div", { class: "scroll" }, G.el("table", { class: "plain stack" }, G.el("thead", {}, G.el("tr", {}, titles.map((title) => G.el("th", { scope: "col" }, title)))), G.el("tbody", {}, rows))));
  }

  function info(overview) {
    const rows = Object.entries(overview.info || {}).filter(([key]) => key !== "started").map(([key, value]) => {
      const text = value !== null && typeof value === "object" ? Object.entries(value).map(([name, one]) => `${name} ${shown(one)}`).join(", ") : shown(value);
      return [G.el("dt", {}, G.oneLine(key, 60)), G.el("dd", {}, G.longText(text, 300))];
    });
    const times = [[G.el("dt", {}, "started"), G.el("dd", {}, G.when(overview.started))], [G.el("dt", {}, "newest record"), G.el("dd", {}, G.when(overview.updated))]];
    return G.el("dl", { class: "pairs-list" }, times, rows);
  }

  function update(ctx) {
    const { id, overview } = ctx.first;
    loadText(
      G.source.recipe(id),
      (answer) => {
        parts.text = answer.text;
        parts.recipe.say(answer.text ? null : "The folder has no recipe.yaml.");
        G.fillOnce(parts.recipe.body, `${id} ${answer.text}`, () => G.el("pre", { class: "code" }, G.longText(answer.text || "", 65536)));
      },
      (error) => parts.recipe.say(error.message),
    );
    G.fillOnce(parts.info.body, JSON.stringify([id, overview.info, overview.updated]), () => info(overview));
    const other = options(ctx);
    if (!other) return parts.difference.say(parts.select.disabled ? "There is no other run to compare with." : "Choose a run to compare with.");
    loadOther(G.source.recipe(id, other), (answer) => differences(ctx, answer, other), (error) => parts.difference.say(error.message));
    return null;
  }

  G.view({ key: "recipe", title: "Recipe", names: [], mount, update, lead: "Every setting of the run, and what is different elsewhere." });
})();
