/* Colours that a colour-blind reader tells apart (Okabe and Ito), for paper and for a dark room. */
(function () {
  "use strict";
  const G = window.G;

  const PALETTES = {
    light: {
      series: ["#0072b2", "#d55e00", "#009e73", "#b8568f", "#b07800", "#2b8fc9", "#555b66"],
      ink: "#1d2126", soft: "#5b636e", line: "#e3e5e9", faint: "#f0f1f3", card: "#ffffff",
      good: "#00795a", bad: "#b54708", kept: "#0072b2", outside: "#e0b35a", cut: "#d55e00", none: "#c3c8cf",
      ramp: [[0, "#ffffff"], [0.02, "#eaf1f7"], [0.25, "#b5d3e8"], [0.5, "#64a3cd"], [0.75, "#21689e"], [1, "#0b2f52"]],
      under: [0, 94, 168], over: [213, 94, 0],
    },
    dark: {
      series: ["#5ab4e8", "#f28b4b", "#35c69b", "#e09ac4", "#e8b13c", "#9ad0f2", "#a9b1bc"],
      ink: "#e9ebee", soft: "#9aa3af", line: "#2c323a", faint: "#22272e", card: "#1a1e24",
      good: "#4fd3a8", bad: "#f7a668", kept: "#5ab4e8", outside: "#a98433", cut: "#f28b4b", none: "#525a65",
      ramp: [[0, "#1a1e24"], [0.02, "#202b36"], [0.25, "#234a69"], [0.5, "#3b82b5"], [0.75, "#7fbfe6"], [1, "#eef8ff"]],
      under: [90, 180, 232], over: [242, 139, 75],
    },
  };
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
  const KEY = "gspo-theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = remembered();

  /* A page opened from disk may have no storage: then the choice lasts as long as the page. */
  function remembered() {
    try {
      return window.localStorage.getItem(KEY);
    } catch (error) {
      console.info("theme is not remembered:", error.message);
      return null;
    }
  }

  function remember(value) {
    chosen = value;
    try {
      if (value === null) window.localStorage.removeItem(KEY);
      else window.localStorage.setItem(KEY, value);
    } catch (error) {
      console.info("theme is not remembered:", error.message);
    }
  }

  const name = () => (chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light");

  function apply() {
    document.documentElement.dataset.theme = name();
    const button = document.getElementById("theme-toggle");
    const word = chosen === "light" || chosen === "dark" ? chosen : "auto";
    G.fill(button, { light: "\u2600 Light", dark: "\u263e Dark", auto: "\u25d0 Auto" }[word]);
    button.setAttribute("aria-label", `Theme: ${word}. Press to change`);
  }

  const NEXT = { light: "dark", dark: null };

  G.theme = {
    colours: () => PALETTES[name()],
    dash: (slot) => DASHES[slot % DASHES.length],
    series: (slot) => PALETTES[name()].series[slot % PALETTES.light.series.length],
    mount(changed) {
      apply();
      document.getElementById("theme-toggle").addEventListener("click", () => {
        remember(chosen in NEXT ? NEXT[chosen] : "light");
        apply();
        changed();
      });
      dark.addEventListener("change", () => {
        apply();
        changed();
      });
    },
  };
})();
