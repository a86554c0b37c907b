/* The top line (which run, how far) and the list of views. */
(function () {
  "use strict";
  const G = window.G;

  function progress(overview) {
    const { step, total_steps: total } = overview;
    const share = total ? Math.min(1, step / total) : 0;
    const bar = G.el("span", { class: "bar", "aria-hidden": "true", css: { "--share": String(share) } });
    const number = G.number("step", step, { define: "step", step });
    return G.el("span", { class: "progress" }, "step ", number, total ? ` of ${total.toLocaleString("en")}` : null, total ? bar : null);
  }

  function render(ctx) {
    const head = document.getElementById("head");
    if (!ctx.first) return G.fill(head);
    const { overview } = ctx.first;
    const more = ctx.runs.length > 1 ? `and ${ctx.runs.length - 1} more` : null;
    const left = overview.status === "running" && G.isNumber(overview.time_left_s) ? `${G.duration(overview.time_left_s)} left` : null;
    G.fillOnce(head, JSON.stringify([overview.name, overview.step, overview.status, left, more, overview.total_steps]), () => [
      G.el("span", { class: "head-name", title: G.oneLine(overview.name, 400) }, G.oneLine(overview.name, 60)),
      more ? G.el("span", { class: "soft" }, more) : null,
      G.statusPill(overview.status),
      overview.status === "empty" ? null : progress(overview),
      left ? G.el("span", { class: "soft" }, left) : null,
    ]);
    document.title = `${overview.step} \u00b7 ${G.oneLine(overview.name, 60)} \u00b7 gspo`;
    return null;
  }

  function views(list, current) {
    const nav = document.getElementById("views");
    if (!nav.firstChild) {
      list.forEach((view, at) =>
        nav.append(
          G.el(
            "button",
            { type: "button", data: { goto: view.key }, on: { click: () => G.state.set({ view: view.key }) } },
            G.el("span", { class: "view-number", "aria-hidden": "true" }, String(at + 1)),
            view.title,
          ),
        ),
      );
      nav.addEventListener("keydown", (event) => arrows(event, nav));
    }
    for (const button of nav.children) {
      const on = button.dataset.goto === current;
      if (on) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
      if (on && nav.lastShown !== current) {
        nav.lastShown = current;
        nav.scrollLeft = button.offsetLeft - nav.clientWidth / 2 + button.offsetWidth / 2;
      }
    }
  }

  const MOVES = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

  function arrows(event, nav) {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const buttons = [...nav.children];
    const at = buttons.findIndex((button) => button.dataset.goto === G.currentView().key);
    const next = buttons[(at + move + buttons.length) % buttons.length];
    next.focus();
    next.click();
  }

  G.header = { render, views };
})();
