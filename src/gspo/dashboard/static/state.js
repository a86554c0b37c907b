/* What a person chose. It lives in the URL's hash and nowhere else, so a link shows the same thing. */
(function () {
  "use strict";
  const G = window.G;
  const listeners = [];
  let values = read();

  function read() {
    const found = {};
    for (const [key, value] of new URLSearchParams(window.location.hash.slice(1))) found[key] = value;
    return found;
  }

  function write(replace) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(values)) if (value !== "") query.set(key, value);
    const hash = "#" + query.toString().replace(/%2C/g, ",");
    if (hash === window.location.hash) return;
    window.history[replace ? "replaceState" : "pushState"](null, "", hash);
  }

  function tell() {
    for (const listener of listeners) listener();
  }

  window.addEventListener("hashchange", () => {
    values = read();
    tell();
  });
  window.addEventListener("popstate", () => {
    values = read();
    tell();
  });

  const whole = (text) => (/^\d+$/.test(text || "") ? Number(text) : null);

  G.state = {
    get: (key) => values[key] || "",
    /* Changes some keys; "" or null takes one out. A new view makes a step in the history. */
    set(changes) {
      const view = values.view;
      const next = { ...values };
      for (const [key, value] of Object.entries(changes)) {
        if (value === null || value === "") delete next[key];
        else next[key] = String(value);
      }
      if (JSON.stringify(next) === JSON.stringify(values)) return;
      values = next;
      write(values.view === view);
      tell();
    },
    runs: () => (values.runs || "").split(",").filter((id) => /^[0-9a-f]{10}$/.test(id)),
    /* The step a person chose; null follows the newest. */
    step: () => whole(values.step),
    row: () => whole(values.row),
    number: (key) => {
      const found = parseFloat(values[key]);
      return Number.isFinite(found) ? found : null;
    },
    listen: (listener) => listeners.push(listener),
  };
})();
