/* One response, token by token, coloured by what moved it. */
(function () {
  "use strict";
  const G = window.G;
  const MOST = 4000; // tokens drawn at once; the rest behind a button

  const MODES = {
    ratio: { label: "log-ratio", define: "token_log_ratio", values: (t) => minus(t.logp, t.old_logp), diverging: true, none: "No update ran this response, so its tokens have no log-ratio." },
    gap: { label: "engine gap", define: "token_gap", values: (t) => minus(t.old_logp, t.engine_logp), diverging: true, none: "The log-probs of the trainer or of the engine are not recorded for this response." },
    surprisal: { label: "surprisal", define: "token_surprisal", values: (t) => (t.old_logp || t.engine_logp || null) && (t.old_logp || t.engine_logp).map((one) => (one === null ? null : -one)), diverging: false, none: "No log-probs are recorded for this response." },
  };

  function minus(a, b) {
    return a && b ? a.map((one, at) => (G.isNumber(one) && G.isNumber(b[at]) ? one - b[at] : null)) : null;
  }

  /* The size that has the full colour: the largest but for the outermost hundredth. */
  function scaleOf(values) {
    const sizes = values.filter(G.isNumber).map(Math.abs);
    return G.fit.quantile(sizes, 0.99) || 0;
  }

  function colour(value, scale, diverging) {
    if (!G.isNumber(value) || !(scale > 0)) return "transparent";
    const { under, over } = G.theme.colours();
    const [red, green, blue] = diverging && value < 0 ? under : over;
    // The root shows small values beside large ones: log-ratios span decades within a response.
    const strength = Math.sqrt(Math.min(1, Math.abs(value) / scale));
    return `rgba(${red}, ${green}, ${blue}, ${(0.72 * strength).toFixed(3)})`;
  }

  function tokenText(tokens, at) {
    return tokens.text ? tokens.text[at] : `[${tokens.id[at]}]`;
  }

  /* A line break is shown and made; a token without a visible character still has a place. */
  function shownToken(text) {
    if (text === "") return "\u2205";
    return G.visible(text).replace(/\n/g, "\u21b5\n").replace(/\t/g, "\u21e5");
  }

  function span(tokens, values, at, scale, mode) {
    return G.el(
      "span",
      {
        class: "token", role: "listitem", tabindex: at === 0 ? "0" : "-1", css: { "--heat": colour(values && values[at], scale, mode.diverging) },
        data: { token: String(at), metric: mode.define, value: values && G.isNumber(values[at]) ? String(values[at]) : "" },
      },
      shownToken(tokenText(tokens, at)),
    );
  }

  function legend(scale, mode) {
    const steps = mode.diverging ? [-1, -0.25, -0.05, 0, 0.05, 0.25, 1] : [0, 0.05, 0.25, 1];
    const word = (share) => (share === 0 ? "0" : G.signed(share * scale, (value) => G.short(value, 2)));
    return G.el(
      "div",
      { class: "heat-legend" },
      steps.map((share) => G.el("span", { css: { "--heat": colour(share * scale, scale, mode.diverging) } }, mode.diverging ? word(share) : G.short(share * scale, 2))),
      G.el("span", { class: "soft plain" }, "nats", mode.diverging ? " (blue: less likely, orange: likelier)" : " (darker: less likely when sampled)"),
      G.info(mode.define),
    );
  }

  function readout(node, tokens, at) {
    const parts = Object.values(MODES).map((mode) => {
      const values = mode.values(tokens);
      return values && G.isNumber(values[at]) ? `${mode.label} ${mode.diverging ? G.signed(values[at]) : G.short(values[at])}` : null;
    });
    G.fill(node, G.el("b", {}, `token ${at}`), " ", G.el("code", {}, G.oneLine(tokenText(tokens, at), 40)), ` (id ${tokens.id[at]}) `, parts.filter(Boolean).join(" \u00b7 "));
  }

  function arrows(event, box) {
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 }[event.key];
    if (!move || event.shiftKey) return;
    const all = [...box.children];
    const at = all.indexOf(document.activeElement);
    const next = all[Math.min(all.length - 1, Math.max(0, at + move))];
    event.preventDefault();
    event.stopPropagation();
    if (at >= 0) all[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  /* Fills the node; gives a function that marks some tokens. */
  function render(node, answer, modeName) {
    const mode = MODES[modeName] || MODES.ratio;
    const { tokens } = answer;
    const values = mode.values(tokens);
    const scale = values ? scaleOf(values) : 0;
    const said = G.el("p", { class: "readout", "aria-live": "polite" }, "Point at a token, or reach it with Tab and the arrow keys, to read its values.");
    const box = G.el("div", { class: "tokens", role: "list", "aria-label": `Tokens coloured by ${mode.label}` });
    const draw = (from, to) => { for (let at = from; at < to; at++) box.append(span(tokens, values, at, scale, mode)); };
    draw(0, Math.min(MOST, tokens.id.length));
    const tell = (event) => event.target.dataset && event.target.dataset.token && readout(said, tokens, Number(event.target.dataset.token));
    box.addEventListener("pointerover", tell);
    box.addEventListener("focusin", tell);
    box.addEventListener("keydown", (event) => arrows(event, box));
    const rest = tokens.id.length - MOST;
    const more = rest > 0 ? G.button(`show ${rest.toLocaleString("en")} more tokens`, () => { draw(MOST, tokens.id.length); more.remove(); }, { class: "link" }) : null;
    const notes = [values ? null : mode.none, tokens.text ? null : "No tokenizer was found for this run, so tokens are shown by their ids."].filter(Boolean);
    G.fill(node, values ? legend(scale, mode) : null, notes.map((text) => G.el("p", { class: "words" }, text)), said, box, more);
    return (marked) => {
      for (const one of box.querySelectorAll(".marked")) one.classList.remove("marked");
      const found = marked.map((at) => box.children[at]).filter(Boolean);
      for (const one of found) one.classList.add("marked");
      if (found.length) {
        found[0].scrollIntoView({ block: "nearest" });
        readout(said, tokens, marked[0]);
      }
    };
  }

  G.tokens = { MODES, render, tokenText };
})();
