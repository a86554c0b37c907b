/* The bins of log s: equal in the logarithm on both sides of 0, drawn at equal width.
   Position k is edge k; a value lies between its edges as its logarithm does. */
(function () {
  "use strict";
  const G = window.G;

  const inBin = function (value, low, high) {
    if (low < 0 && high > 0) return (value - low) / (high - low); // the bin around 0 is linear
    return Math.log(Math.abs(value) / Math.abs(low)) / Math.log(Math.abs(high) / Math.abs(low));
  };

  /* Number of the bin that holds the value; values beyond the edges are in the outer bins. */
  function binOf(edges, value) {
    let low = 0;
    let high = edges.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (value >= edges[middle]) low = middle;
      else high = middle;
    }
    return low;
  }

  /* Where a value lies on the axis of bins. */
  function position(edges, value) {
    if (value === null || Number.isNaN(value)) return null;
    const bin = binOf(edges, value);
    const share = inBin(value, edges[bin], edges[bin + 1]);
    return bin + Math.min(1, Math.max(0, share));
  }

  function label(value) {
    const size = Math.abs(value);
    const power = Math.round(Math.log10(size));
    const sign = value < 0 ? "\u2212" : "";
    if (power >= -2 && power <= 1) return sign + String(10 ** power).slice(0, 4);
    return `${sign}10<sup>\u2212${-power}</sup>`; // Plotly's own markup
  }

  /* Ticks at the decades, and 0 in the middle; `every` leaves decades out where space is short. */
  function ticks(edges, every) {
    const at = [];
    const text = [];
    const middle = (edges.length - 1) / 2; // the bin around 0 has room for one label
    edges.forEach((edge, index) => {
      const power = Math.log10(Math.abs(edge));
      if (Math.abs(power - Math.round(power)) > 1e-6) return;
      if (Math.round(power) % (every || 1) !== 0 || index === middle - 0.5 || index === middle + 0.5) return;
      at.push(index);
      text.push(label(edge));
    });
    at.push(middle);
    text.push("0");
    return { at, text };
  }

  /* What a bin spans, in words for the hover. */
  const span = (edges, bin) => `${G.short(edges[bin])} to ${G.short(edges[bin + 1])} nats`;

  /* The edges of the recorded histograms: 4 a decade from 1e-6 to 10 on both sides. */
  function standardEdges() {
    const side = G.range(29).map((at) => 10 ** (-6 + at / 4));
    return side.map((edge) => -edge).reverse().concat(side);
  }

  G.symlog = { binOf, position, ticks, span, standardEdges };
})();
