/* The step that the panels of one step are about: a slider, a number, and "newest" to follow the run. */
(function () {
  "use strict";
  const G = window.G;
  let parts = null;
  let steps = [];

  function mount() {
    const root = document.getElementById("stepper");
    const slider = G.el("input", { type: "range", min: "0", step: "1", "aria-label": "Step", on: { input: () => G.chooseStep(steps[Number(slider.value)]) } });
    const number = G.el("input", { type: "number", class: "step-number", "aria-label": "Step number", on: { change: () => typed(number.value) } });
    const back = G.button("\u2190", () => move(-1), { "aria-label": "One step back" });
    const on = G.button("\u2192", () => move(1), { "aria-label": "One step on" });
    const newest = G.button("Newest", () => G.state.set({ step: null, row: null }), { title: "Follow the newest step" });
    const of = G.el("span", { class: "soft step-of" });
    root.append(G.el("span", { class: "step-label" }, "Step"), back, slider, on, number, of, newest);
    parts = { root, slider, number, back, on, newest, of };
  }

  function typed(text) {
    const wanted = Math.round(Number(text));
    if (text !== "" && Number.isFinite(wanted)) G.chooseStep(nearest(wanted));
  }

  const nearest = (wanted) => steps.reduce((best, step) => (Math.abs(step - wanted) < Math.abs(best - wanted) ? step : best), steps[0]);

  function move(by) {
    if (!steps.length) return;
    const at = steps.indexOf(nearest(G.currentStep()));
    const next = steps[Math.min(steps.length - 1, Math.max(0, at + by))];
    if (next !== G.currentStep()) G.chooseStep(next);
  }

  function render(view, ctx) {
    if (!parts) mount();
    steps = view.usesSteps && ctx.first ? ctx.stepList : [];
    parts.root.hidden = steps.length === 0;
    if (!steps.length) return;
    const at = Math.max(0, steps.indexOf(nearest(ctx.step)));
    parts.slider.max = String(steps.length - 1);
    parts.slider.value = String(at);
    parts.slider.setAttribute("aria-valuetext", `step ${ctx.step}`);
    if (document.activeElement !== parts.number) parts.number.value = String(ctx.step);
    parts.number.min = String(steps[0]);
    parts.number.max = String(steps[steps.length - 1]);
    parts.back.disabled = at === 0;
    parts.on.disabled = at === steps.length - 1;
    parts.newest.setAttribute("aria-pressed", String(ctx.following));
    G.fill(parts.of, `of ${steps[steps.length - 1].toLocaleString("en")}`);
  }

  G.chooseStep = function (step) {
    if (Number.isInteger(step) && step > 0) G.state.set({ step, row: null, page: null });
  };
  G.stepper = { render, move };
})();
