/* Small statistics: pooled moments by length, the exponent in spread ~ L^-a, means with their error. */
(function () {
  "use strict";
  const G = window.G;

  /* Weighted least squares of log std on log L. Null below two lengths. Points: {x, std, count}. */
  function exponent(points) {
    const used = points.filter((point) => point.std > 0 && point.count > 1);
    if (used.length < 2) return null;
    let weight = 0;
    let meanX = 0;
    let meanY = 0;
    for (const point of used) {
      weight += point.count;
      meanX += point.count * Math.log(point.x);
      meanY += point.count * Math.log(point.std);
    }
    meanX /= weight;
    meanY /= weight;
    let across = 0;
    let along = 0;
    for (const point of used) {
      across += point.count * (Math.log(point.x) - meanX) * (Math.log(point.std) - meanY);
      along += point.count * (Math.log(point.x) - meanX) ** 2;
    }
    if (!(along > 0)) return null;
    const slope = across / along;
    return { a: -slope, at: (x) => Math.exp(meanY + slope * (Math.log(x) - meanX)), x: Math.exp(meanX), y: Math.exp(meanY) };
  }

  /* Means and spreads of many steps as one: counts weigh the means, degrees of freedom the variances. */
  function pooled(counts, means, stds) {
    let count = 0;
    let sum = 0;
    let freedom = 0;
    let squares = 0;
    counts.forEach((number, at) => {
      if (!G.isNumber(number) || number < 1 || !G.isNumber(means[at])) return;
      count += number;
      sum += number * means[at];
      if (number < 2 || !G.isNumber(stds[at])) return;
      freedom += number - 1;
      squares += (number - 1) * stds[at] ** 2;
    });
    return { count, mean: count ? sum / count : null, std: freedom ? Math.sqrt(squares / freedom) : null };
  }

  /* Mean of the finite values, how many they are, and the first and last index used. */
  function mean(values) {
    const finite = values.filter(G.isNumber);
    return finite.length ? finite.reduce((sum, value) => sum + value, 0) / finite.length : null;
  }

  /* Mean over `width` steps up to each one; null until the first value. */
  function running(values, width) {
    return values.map((_, at) => mean(values.slice(Math.max(0, at - width + 1), at + 1)));
  }

  function quantile(values, share) {
    const sorted = values.filter(G.isNumber).sort((a, b) => a - b);
    if (!sorted.length) return null;
    const at = share * (sorted.length - 1);
    const low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  }

  G.fit = { exponent, pooled, mean, running, quantile };
})();
