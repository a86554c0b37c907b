/* Keys: views, steps, search, help. Nothing is taken from fields that are being typed in. */
(function () {
  "use strict";
  const G = window.G;

  const LIST = [
    ["1 to 8", "go to a view"],
    ["\u2191 \u2193", "previous and next view, in the list of views; Shift + \u2190 \u2192 anywhere"],
    ["\u2190 \u2192", "one step back and on; in a response: one token"],
    ["n", "follow the newest step"],
    ["/", "search the responses (or the runs)"],
    ["t", "light, dark, or as the system has it"],
    ["?", "this list"],
    ["Escape", "close what is open"],
    ["drag, double click", "zoom into a chart, and out again"],
  ];

  const typing = (node) => node.matches("input:not([type=checkbox]), select, textarea, [contenteditable]");

  function search() {
    const section = document.querySelector(`section[data-view="${G.currentView().key}"]`);
    const field = section.querySelector("input[type=search]");
    if (field) return field.focus();
    G.app.afterShow(() => document.querySelector("section[data-view=rollouts] input[type=search]").focus());
    G.state.set({ view: "rollouts" });
    return null;
  }

  function help() {
    const dialog = document.getElementById("help");
    if (dialog.open) return dialog.close();
    const rows = LIST.map(([key, words]) => [G.el("dt", {}, G.el("kbd", {}, key)), G.el("dd", {}, words)]);
    G.fill(dialog, G.el("h2", {}, "Keys"), G.el("dl", {}, rows), G.button("Close", () => dialog.close()));
    dialog.showModal();
    return null;
  }

  function escape() {
    G.tip.hide();
    document.body.classList.remove("runs-open");
    document.getElementById("runs-toggle").setAttribute("aria-expanded", "false");
    if (G.state.get("group")) G.state.set({ group: null });
  }

  const ACTIONS = {
    "/": search,
    "?": help,
    n: () => G.state.set({ step: null, row: null }),
    t: () => document.getElementById("theme-toggle").click(),
    ArrowLeft: () => G.stepper.move(-1),
    ArrowRight: () => G.stepper.move(1),
  };

  function act(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") return escape();
    if (typing(event.target) || document.getElementById("help").open) return;
    const turn = event.shiftKey && { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
    if (turn) G.turnView(turn);
    else if (digit) G.goToView(digit - 1);
    else if (ACTIONS[event.key]) ACTIONS[event.key]();
    else return;
    event.preventDefault();
  }

  function mount() {
    document.addEventListener("keydown", act);
    document.getElementById("help-toggle").addEventListener("click", help);
    const toggle = document.getElementById("runs-toggle");
    toggle.addEventListener("click", () => {
      const open = document.body.classList.toggle("runs-open");
      toggle.setAttribute("aria-expanded", String(open));
    });
  }

  G.keys = { mount };
})();
