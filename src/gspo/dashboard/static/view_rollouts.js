/* View 4: rollouts. A table of the step's responses, and the group of the one that is chosen. */
(function () {
  "use strict";
  const G = window.G;
  const parts = {};
  const loadTable = G.latest();
  const loadGroup = G.latest();

  function mount(section) {
    const grid = G.grid(section);
    parts.group = G.panel(grid, { title: "The group side by side", define: ["group", "reward"], wide: true });
    parts.group.controls.append(G.button("Close", () => G.state.set({ group: null })));
    parts.panel = G.panel(grid, { title: "Responses", explain: "Every response of the step. Select a row to see its group.", wide: true });
    parts.filters = G.rolloutsTable.filters();
    parts.table = G.el("div", { class: "table-box" });
    parts.pager = G.el("div", { class: "pager" });
    parts.panel.root.insertBefore(parts.filters.root, parts.panel.root.querySelector(".words"));
    parts.panel.body.append(parts.table, parts.pager);
  }

  function showTable(answer, ctx) {
    parts.panel.say(null);
    const key = JSON.stringify([ctx.first.id, ctx.step, G.rolloutsTable.query(), G.state.row(), answer.matched]);
    if (!answer.rows.length) {
      parts.table.filledWith = null;
      G.fill(parts.table, G.el("p", { class: "words" }, answer.total ? "No response passes these filters." : "This step has no responses."));
    } else G.fillOnce(parts.table, key, () => G.rolloutsTable.table(answer));
    G.fill(parts.pager, G.rolloutsTable.pager(answer));
    const csv = G.source.csv ? [" ", G.el("a", { href: G.source.csv(ctx.first.id, ctx.step), download: "" }, "all of the step as CSV")] : null;
    const cut = G.source.report ? " A report holds the groups that moved most, of the first, the middle and the last step." : "";
    parts.panel.note(`About ${G.about(ctx, ctx.step)}.${cut}`, csv);
  }

  function update(ctx) {
    const { id } = ctx.first;
    parts.filters.sync();
    loadTable(G.store.responses(id, ctx.step, G.rolloutsTable.query()), (answer) => showTable(answer, ctx), (error) => parts.panel.say(error.message));
    const group = G.state.get("group");
    const opened = parts.group.root.hidden && group !== "";
    parts.group.root.hidden = group === "";
    if (group === "") return;
    const asked = { group, sort: "row", limit: 64 };
    loadGroup(
      G.store.responses(id, ctx.step, asked),
      (answer) => {
        parts.group.say(null);
        G.fillOnce(parts.group.body, JSON.stringify([id, ctx.step, group, G.state.row()]), () => {
          const box = G.el("div", {});
          G.rolloutsGroup.render(box, ctx, answer);
          return box;
        });
        if (opened) parts.group.root.scrollIntoView({ block: "nearest" });
      },
      (error) => parts.group.say(error.message),
    );
  }

  G.view({
    key: "rollouts", title: "Rollouts", usesSteps: "responses", names: ["reward/mean"], mount, update,
    lead: "What was sampled, how it was judged, and what the update did with it.",
  });
})();
