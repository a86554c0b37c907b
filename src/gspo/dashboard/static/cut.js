/* The cut rule on the responses of a step, as the trainer has it: log s above the band and A > 0, or
   below and A < 0. The first minibatch and A = 0 are no part of it. */
(function () {
  "use strict";
  const G = window.G;

  /* Rows that the share is about: A != 0, off-policy minibatch, log s measured. */
  function offPolicy(units) {
    const rows = [];
    for (let row = 0; row < units.length.length; row++) {
      const late = units.minibatch[row] !== null && units.minibatch[row] >= 2;
      if (late && units.advantage[row] !== 0 && G.isNumber(units.log_s[row])) rows.push(row);
    }
    return rows;
  }

  /* Lower and upper bound on log s, nats, for a response of this length. */
  function bounds(band, length) {
    if (!band || band.low === null || band.high === null) return null;
    if (band.form === "length_fair") {
      const root = Math.sqrt(Math.max(1, length));
      return [-band.low / root, band.high / root];
    }
    if (band.form === "log") return [-band.low, band.high];
    return [band.low < 1 ? Math.log1p(-band.low) : -Infinity, Math.log1p(band.high)];
  }

  /* -1 cut below, 1 cut above, 0 kept. */
  function side(band, units, row) {
    const range = bounds(band, units.length[row]);
    if (!range) return 0;
    if (units.advantage[row] > 0 && units.log_s[row] > range[1]) return 1;
    if (units.advantage[row] < 0 && units.log_s[row] < range[0]) return -1;
    return 0;
  }

  const outside = function (band, units, row) {
    const range = bounds(band, units.length[row]);
    return range !== null && (units.log_s[row] > range[1] || units.log_s[row] < range[0]);
  };

  function tally(band, units, rows) {
    const count = { total: rows.length, low: 0, high: 0 };
    for (const row of rows) {
      const where = side(band, units, row);
      if (where < 0) count.low++;
      if (where > 0) count.high++;
    }
    count.share = count.total ? (count.low + count.high) / count.total : null;
    return count;
  }

  /* The scale at which a response is just no longer cut by [-low, high] x scale / sqrt(L). */
  function critical(low, high, units, row) {
    const moved = units.log_s[row] * Math.sqrt(Math.max(1, units.length[row]));
    if (units.advantage[row] > 0 && moved > 0) return moved / high;
    if (units.advantage[row] < 0 && moved < 0) return -moved / low;
    return 0;
  }

  /* The length-fair band with the sides of a fixed one, scaled so that it cuts as many responses. */
  function lengthFair(fixed, units, rows) {
    const range = bounds(fixed, 1);
    const low = -range[0];
    const high = range[1];
    if (!(low > 0) || !(high > 0) || !Number.isFinite(low)) return null;
    const wanted = tally(fixed, units, rows);
    const number = wanted.low + wanted.high;
    const scales = rows.map((row) => critical(low, high, units, row)).sort((a, b) => b - a);
    const above = number > 0 ? scales[number - 1] : scales[0] * 1.5;
    const below = number < scales.length ? scales[number] : 0;
    const scale = (above + below) / 2;
    return scale > 0 ? { form: "length_fair", low: low * scale, high: high * scale } : null;
  }

  /* Length buckets in powers of two: 1, 2-3, 4-7, ... Number of the bucket, its name, its middle. */
  const bucketOf = (length) => (length < 1 ? -1 : Math.floor(Math.log2(length)));
  const bucketName = (power) => (power === 0 ? "1" : `${2 ** power}-${2 ** (power + 1) - 1}`);
  function bucketMiddle(name) {
    const ends = name.split("-").map(Number);
    return Math.sqrt(ends[0] * ends[ends.length - 1]);
  }

  function byBucket(units, rows) {
    const found = new Map();
    for (const row of rows) {
      const power = bucketOf(units.length[row]);
      if (power < 0) continue;
      if (!found.has(power)) found.set(power, []);
      found.get(power).push(row);
    }
    return [...found.keys()].sort((a, b) => a - b).map((power) => ({ name: bucketName(power), rows: found.get(power) }));
  }

  G.cut = { offPolicy, bounds, side, outside, tally, lengthFair, byBucket, bucketMiddle };
})();
