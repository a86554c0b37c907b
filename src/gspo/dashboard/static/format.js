/* Numbers and times as a person reads them. The exact value stays in data-value. */
(function () {
  "use strict";
  const G = window.G;
  const NONE = "\u2013"; // shown where there is no value
  G.NONE = NONE;

  const minus = (text) => text.replace(/^-/, "\u2212").replace(/e-/, "e\u2212");

  /* Three significant digits; thousands apart; powers of ten where zeros would hide the number. */
  G.short = function (value, digits) {
    if (!G.isNumber(value)) return NONE;
    const size = Math.abs(value);
    const kept = digits || 3;
    if (size === 0) return "0";
    if (size < 1e-3 || size >= 1e7) return minus(value.toExponential(kept - 1).replace("e+", "e"));
    if (Number.isInteger(value) || size >= 1000) {
      return minus(Math.round(value).toLocaleString("en", { useGrouping: true }));
    }
    return minus(trimmed(value.toPrecision(kept)));
  };

  const trimmed = (text) => (text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text);

  /* Shares keep their zeros so that columns line up: 0.150. */
  G.share = (value) => (G.isNumber(value) ? minus(value.toFixed(3)) : NONE);
  G.two = (value) => (G.isNumber(value) ? minus(value.toFixed(2)) : NONE);
  G.percent = (value) => (G.isNumber(value) ? `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %` : NONE);

  G.signed = function (value, show) {
    if (!G.isNumber(value)) return NONE;
    const text = (show || G.short)(value);
    return value > 0 ? "+" + text : text;
  };

  /* Seconds in the two largest units that say something. */
  G.duration = function (value_s) {
    if (!G.isNumber(value_s)) return NONE;
    const whole = Math.max(0, Math.round(value_s));
    const days = Math.floor(whole / 86400);
    const hours = Math.floor(whole / 3600) % 24;
    const minutes = Math.floor(whole / 60) % 60;
    const parts = days ? [`${days} d`, `${hours} h`] : hours ? [`${hours} h`, `${minutes} min`] : minutes ? [`${minutes} min`, `${whole % 60} s`] : [value_s < 10 ? `${value_s.toFixed(1)} s` : `${whole} s`];
    return G.together(parts.join(" "));
  };

  G.when = function (iso) {
    const time = new Date(iso);
    if (!iso || Number.isNaN(time.getTime())) return NONE;
    return time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  };

  G.plural = (count, word, many) => `${count.toLocaleString("en")} ${count === 1 ? word : many || word + "s"}`;

  /* Errors of the server begin small and end open: on the page they stand alone. */
  G.sentence = function (text) {
    const whole = text.charAt(0).toUpperCase() + text.slice(1);
    return /[.!?]$/.test(whole) ? whole : whole + ".";
  };

  /* Lines break before or after these words, not within. */
  G.together = (words) => words.replace(/ /g, "\u00a0");

  /* "a, b and c" */
  G.listed = function (words) {
    return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
  };
})();
