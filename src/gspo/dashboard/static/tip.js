/* The definition of whatever is under the pointer or has the focus. One box for the whole page. */
(function () {
  "use strict";
  const G = window.G;
  const WAIT_MS = 250; // a pointer on its way elsewhere opens nothing
  let holder = null;
  let timer = 0;

  const box = () => document.getElementById("tip");

  function place(target) {
    const tip = box();
    const at = target.getBoundingClientRect();
    const width = tip.offsetWidth;
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8));
    const below = at.bottom + 6;
    const fits = below + tip.offsetHeight < window.innerHeight || at.top < tip.offsetHeight + 12;
    tip.style.left = `${left}px`;
    tip.style.top = `${fits ? below : at.top - tip.offsetHeight - 6}px`;
  }

  function show(target) {
    hide();
    const names = (target.dataset.define || "").split(",").filter(Boolean);
    const note = target.dataset.note;
    G.fill(box(), note ? G.el("p", {}, note) : null, G.definitions.explain(names));
    box().hidden = false;
    holder = target;
    target.setAttribute("aria-describedby", "tip");
    place(target);
  }

  function hide() {
    clearTimeout(timer);
    if (holder) holder.removeAttribute("aria-describedby");
    holder = null;
    box().hidden = true;
  }

  const defined = (event) => event.target.closest && event.target.closest("[data-define], [data-note]");

  function mount() {
    document.addEventListener("pointerover", (event) => {
      const target = defined(event);
      if (target === holder) return;
      hide();
      if (target) timer = setTimeout(() => show(target), WAIT_MS);
    });
    document.addEventListener("focusin", (event) => {
      const target = defined(event);
      if (target && event.target.matches(":focus-visible")) show(target);
      else if (!target) hide();
    });
    document.addEventListener("focusout", hide);
    document.addEventListener("click", (event) => {
      const target = event.target.closest && event.target.closest(".info");
      if (target) show(target);
    });
    window.addEventListener("scroll", hide, { passive: true, capture: true });
  }

  G.tip = { mount, hide, isOpen: () => holder !== null };
})();
