/* Log s and its cuts by length: spread on log-log axes with the fitted exponent, cut share as a heat map. */
(function () {
  "use strict";
  const G = window.G;
  const FEW = 32; // responses: below, a bucket's spread is drawn faintly

  /* The rows of the table that a choice of steps means. */
  function rowsOf(table, step, window_) {
    const all = G.range(table.step.length).filter((at) => table.step[at] > 0);
    const upTo = all.filter((at) => step === null || table.step[at] <= step);
    if (window_ === "one") return upTo.slice(-1);
    return window_ === "recent" ? upTo.slice(-20) : all;
  }

  function points(table, buckets, rows) {
    return buckets
      .map((bucket) => {
        const pick = (name) => rows.map((at) => (table.columns[`log_s/${name}/len_${bucket}`] || [])[at]);
        return { bucket, x: G.cut.bucketMiddle(bucket), ...G.fit.pooled(pick("count"), pick("mean"), pick("std")) };
      })
      .filter((point) => point.count > 0);
  }

  const line = (name, x, y, color, dash) => ({ type: "scatter", mode: "lines", name, x, y, line: { color, dash, width: 1.6 }, hoverinfo: "skip" });

  function fitted(found, fit) {
    const colours = G.theme.colours();
    const ends = [found[0].x / 1.3, found[found.length - 1].x * 1.3];
    return [
      line(`fit: L^\u2212${G.two(fit.a)}`, ends, ends.map(fit.at), colours.series[0], "solid"),
      line("independent noise: L^\u2212\u00bd", ends, ends.map((x) => fit.y * Math.sqrt(fit.x / x)), colours.soft, "dot"),
    ];
  }

  function markers(name, found, value, color, symbol) {
    const kept = found.filter((point) => value(point) > 0);
    return {
      type: "scatter", mode: "markers", name, x: kept.map((point) => point.x), y: kept.map(value),
      marker: { size: 10, color, symbol: kept.map((point) => symbol(point)), opacity: kept.map((point) => (point.count < FEW ? 0.45 : 1)), line: { width: 1.6, color } },
      customdata: kept.map((point) => [point.bucket, point.count, G.short(name === "mean" ? point.mean : point.std)]),
      hovertemplate: "%{customdata[0]} tokens: %{customdata[2]} nats, n = %{customdata[1]}<extra></extra>",
    };
  }

  function decades(values) {
    const low = Math.floor(Math.log10(Math.min(...values)));
    const high = Math.ceil(Math.log10(Math.max(...values)));
    return [low - 0.1, high + 0.1];
  }

  function draw(panel, ctx, window_) {
    const { table, overview } = ctx.first;
    const found = points(table, overview.buckets || [], rowsOf(table, ctx.step, window_));
    const measured = found.filter((point) => point.std > 0);
    if (!measured.length) return panel.say("No spread of log s by length is recorded for these steps: it needs two responses of a length with A \u2260 0 in minibatch 2 or later.");
    const fit = G.fit.exponent(measured);
    const make = () => {
      const colours = G.theme.colours();
      const traces = fit ? fitted(measured, fit) : [];
      traces.push(markers("standard deviation", measured, (point) => point.std, colours.series[0], () => "circle"));
      traces.push(markers("mean", found, (point) => Math.abs(point.mean), colours.series[1], (point) => (point.mean < 0 ? "diamond-open" : "diamond")));
      const all = traces.flatMap((trace) => trace.y);
      return {
        traces,
        layout: {
          margin: { l: 58, r: 14, t: 18, b: 44 },
          xaxis: { type: "log", title: "response length, tokens", tickvals: found.map((point) => point.x), ticktext: found.map((point) => point.bucket) },
          yaxis: { type: "log", title: "nats per token", exponentformat: "power", dtick: 1, range: decades(all) },
        },
      };
    };
    G.draw(panel, make, { summary: `Spread of log s by length${fit ? `, falling as L to the power of minus ${G.two(fit.a)}` : ""}` });
    note(panel, fit, found);
    return null;
  }

  function note(panel, fit, found) {
    const few = found.some((point) => point.count < FEW) ? ` Faint: fewer than ${FEW} responses.` : "";
    const open = found.some((point) => point.mean < 0) ? " Open diamonds: a mean below 0, drawn by its size." : "";
    if (!fit) return panel.note("One length bucket alone says nothing about an exponent." + few + open);
    const number = G.number("fitted_exponent", fit.a, { show: G.two, define: "fitted_exponent" });
    return panel.note("Fitted exponent ", number, ` through ${G.plural(found.filter((point) => point.std > 0).length, "length bucket")} (\u00bd is independent token noise and asks for a length-fair clip, 0 a drift that all tokens share; 'gspo calibrate' gives an interval).`, few, open);
  }

  /* Rows: length buckets, shortest below; columns: steps. */
  function heat(panel, ctx) {
    const { table, overview } = ctx.first;
    const buckets = (overview.buckets || []).filter((bucket) => (table.columns[`clip/cut_share/len_${bucket}`] || []).some(G.isNumber));
    if (!buckets.length) return panel.say("No cut share by length is recorded: nothing can be cut with one minibatch a step.");
    const rows = G.range(table.step.length).filter((at) => table.step[at] > 0);
    const make = () => {
      const colours = G.theme.colours();
      const z = buckets.map((bucket) => rows.map((at) => table.columns[`clip/cut_share/len_${bucket}`][at]));
      const counts = buckets.map((bucket) => rows.map((at) => G.short((table.columns[`log_s/count/len_${bucket}`] || [])[at])));
      return {
        traces: [{
          type: "heatmap", x: rows.map((at) => table.step[at]), y: buckets, z, text: counts, colorscale: colours.ramp, zmin: 0, zmax: Math.max(0.5, G.fit.quantile(z.flat(), 0.98) || 0.5), xgap: rows.length < 120 ? 1 : 0, ygap: 2,
          hovertemplate: "step %{x}, %{y} tokens<br>%{z:.3f} cut of %{text}<extra></extra>", hoverongaps: false,
          colorbar: { thickness: 8, outlinewidth: 0, tickfont: { size: 10, color: colours.soft }, nticks: 5 },
        }],
        layout: {
          plot_bgcolor: colours.faint, margin: { l: 64, r: 14, t: 10, b: 40 },
          xaxis: { title: "step", tickformat: ",d", showgrid: false }, yaxis: { title: "tokens", type: "category", showgrid: false },
        },
      };
    };
    G.draw(panel, make, { summary: `Cut share by length over ${rows.length} steps`, click: (point) => G.chooseStep(Number(point.x)) });
    return null;
  }

  G.trustLength = { draw, heat };
})();
