/* The page's small tools. Everything that is shown passes `visible`: text of a run is never markup. */
(function () {
  "use strict";
  const G = (window.G = window.G || {});

  const CONTROL_PICTURES = 0x2400; // U+2400 + code is the visible picture of control character `code`
  const JOINERS = "\u200c\u200d"; // Persian and emoji need them, and they move nothing
  const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/u;
  const EACH_HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

  function shown(char) {
    const code = char.codePointAt(0);
    if (char === "\n" || char === "\t" || JOINERS.includes(char)) return char;
    if (code < 0x20) return String.fromCharCode(CONTROL_PICTURES + code);
    if (code === 0x7f) return "\u2421";
    if (code <= 0xff) return "\\x" + code.toString(16).padStart(2, "0");
    if (code <= 0xffff) return "\\u" + code.toString(16).padStart(4, "0");
    return "\\U" + code.toString(16).padStart(8, "0");
  }

  /* The same rules as `gspo.recorders.sanitize.visible`. */
  G.visible = function (text) {
    const whole = String(text);
    return HIDDEN.test(whole) ? whole.replace(EACH_HIDDEN, shown) : whole;
  };

  /* On one line: newline and tab as arrows, which every font has; `max` characters kept. */
  G.oneLine = function (text, max) {
    const flat = G.visible(text).replace(/\n/g, "\u21b5").replace(/\t/g, "\u21e5");
    return max && flat.length > max ? Array.from(flat).slice(0, max).join("") + "\u2026" : flat;
  };

  const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "%": "&#37;", $: "&#36;" };
  const LETTER_PX = 8; // a wide letter at a label's size: some characters are ten times as wide
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px sans-serif";

  /* As much of the text as has the width of `max` letters. */
  function narrow(text, max) {
    let kept = text;
    while (kept.length > 1 && pen.measureText(kept).width > LETTER_PX * max) {
      const chars = Array.from(kept);
      kept = chars.slice(0, Math.floor(0.8 * chars.length)).join("");
    }
    return kept === text ? text : kept + "\u2026";
  }

  /* For Plotly, which reads a subset of HTML in labels and hover texts, %{...} as a value to be put
     in, and $...$ as a formula; and which gives up where a label leaves no room for the plot. */
  G.plotText = function (text, max) {
    const most = max || 80;
    return narrow(G.oneLine(text, most), most).replace(/[&<>%$]/g, (char) => ENTITIES[char]);
  };

  const DANGEROUS = /^on|^srcdoc$|^style$/i;

  function setAttribute(node, name, value) {
    if (value === null || value === undefined || value === false) return;
    if (name === "class") node.className = value;
    else if (name === "data") for (const [key, item] of Object.entries(value)) setData(node, key, item);
    else if (name === "on") for (const [kind, act] of Object.entries(value)) node.addEventListener(kind, act);
    else if (name === "css") for (const [key, item] of Object.entries(value)) node.style.setProperty(key, item);
    else if (DANGEROUS.test(name)) throw new Error(`attribute ${name}: use "on" or "css"`);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : G.visible(value));
  }

  function setData(node, key, value) {
    if (value !== null && value !== undefined) node.dataset[key] = G.visible(value);
  }

  /* An element. Strings among the children become text, cleaned; null is left out. */
  G.el = function (tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) setAttribute(node, name, value);
    G.append(node, children);
    return node;
  };

  G.append = function (node, children) {
    for (const child of [].concat(children).flat(2)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : document.createTextNode(G.visible(child)));
    }
  };

  /* Replaces what a node holds. */
  G.fill = function (node, ...children) {
    node.replaceChildren();
    G.append(node, children);
    return node;
  };

  /* Replaces it only if `key` changed, so that focus and scroll stay where nothing is new. */
  G.fillOnce = function (node, key, make) {
    if (node.filledWith === key) return;
    node.filledWith = key;
    G.fill(node, make());
  };

  G.button = function (label, act, attributes) {
    return G.el("button", { type: "button", on: { click: act }, ...attributes }, label);
  };

  /* Long text: the first `max` characters and a button for the rest. */
  G.longText = function (text, max, tag) {
    const whole = String(text);
    const node = G.el(tag || "span", { class: "long" });
    if (whole.length <= max) return G.fill(node, whole);
    const more = G.button("show more", () => G.fill(node, whole), { class: "link" });
    return G.fill(node, whole.slice(0, max) + "\u2026 ", more);
  };

  /* Of several answers under way only the last asked for is used. */
  G.latest = function () {
    let current = 0;
    return function (promise, use, fail) {
      const mine = ++current;
      promise.then(
        (answer) => mine === current && use(answer),
        (error) => mine === current && fail(error),
      );
    };
  };

  G.debounce = function (act, wait_ms) {
    let timer = 0;
    return function (...given) {
      clearTimeout(timer);
      timer = setTimeout(() => act(...given), wait_ms);
    };
  };

  G.isNumber = (value) => typeof value === "number" && Number.isFinite(value);

  G.last = function (values) {
    for (let at = (values || []).length - 1; at >= 0; at--) if (G.isNumber(values[at])) return values[at];
    return null;
  };

  G.range = (count) => Array.from({ length: count }, (_, at) => at);
})();
