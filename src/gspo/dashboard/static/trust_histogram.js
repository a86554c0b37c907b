/* The histogram of log s with the clip band drawn on it: one step, or all steps as a heat map. */
(function () {
  "use strict";
  const G = window.G;
  const EVERY = 60; // pixels a tick label needs: on narrow screens only every second decade has one

  /* Bars of one step, by what became of the responses. Counts by bin for kept, outside and cut. */
  function sort(units, rows, band, edges) {
    const bars = { kept: new Array(edges.length - 1).fill(0), outside: new Array(edges.length - 1).fill(0), cut: new Array(edges.length - 1).fill(0) };
    for (const row of rows) {
      const bin = G.symlog.binOf(edges, units.log_s[row]);
      if (units.cut_low[row] + units.cut_high[row] > 0) bars.cut[bin]++;
      else if (band && G.cut.outside(band, units, row)) bars.outside[bin]++;
      else bars.kept[bin]++;
    }
    return bars;
  }

  function chosenRows(units, minibatch) {
    if (!minibatch) return G.cut.offPolicy(units);
    return G.range(units.length.length).filter(
      (row) => units.minibatch[row] === minibatch && units.advantage[row] !== 0 && G.isNumber(units.log_s[row]),
    );
  }

  const KINDS = [
    ["kept", "inside the band", ""],
    ["outside", "outside, not cut", ""],
    ["cut", "cut", "/"],
  ];

  function bars(edges, counts) {
    const colours = G.theme.colours();
    const x = G.range(edges.length - 1).map((bin) => bin + 0.5);
    const custom = G.range(edges.length - 1).map((bin) => G.symlog.span(edges, bin));
    return KINDS.filter(([kind]) => counts[kind].some((count) => count > 0)).map(([kind, name, shape]) => ({
      type: "bar", x, y: counts[kind], width: 0.92, name, customdata: custom,
      marker: { color: colours[kind], pattern: G.hatch(shape) },
      hovertemplate: `%{customdata}<br>%{y} responses<extra>${name}</extra>`,
    }));
  }

  function edgeLine(at) {
    return { type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: G.theme.colours().ink, width: 1.4 } };
  }

  /* Outside the plot, where no bar is: what the two lines stand for. */
  function edgeWord(at, bound) {
    return { x: at, y: 1, yref: "paper", yanchor: "bottom", text: G.short(bound, 2), showarrow: false, font: { size: 11, color: G.theme.colours().ink } };
  }

  function zone(from, to, opacity) {
    return { type: "rect", x0: from, x1: to, yref: "paper", y0: 0, y1: 1, fillcolor: G.theme.colours().kept, opacity, line: { width: 0 }, layer: "below" };
  }

  /* The band; a length-fair one is drawn for the shortest response (wide) and the longest (narrow). */
  function bandMarks(edges, band, lengths) {
    if (!band) return {};
    const ends = band.form === "length_fair" && lengths.length ? [Math.min(...lengths), Math.max(...lengths)] : [1];
    const shapes = ends.map((length, at) => {
      const [low, high] = G.cut.bounds(band, length).map((bound) => G.symlog.position(edges, Math.max(-10, bound)));
      return zone(low, high, 0.07 + 0.05 * at);
    });
    const [low, high] = G.cut.bounds(band, ends[0]);
    const sides = [Math.max(-10, low), high];
    const at = sides.map((bound) => G.symlog.position(edges, bound));
    return { shapes: shapes.concat(at.map(edgeLine)), annotations: at.map((one, side) => edgeWord(one, sides[side])), legend: { y: 1.1 } };
  }

  /* The part of the axis that holds something, with a margin: most of the 57 bins are empty. */
  function window_(edges, filled, band, lengths) {
    const at = filled.slice();
    if (band) {
      const length = lengths.length ? Math.min(...lengths) : 1;
      for (const bound of G.cut.bounds(band, length)) if (Number.isFinite(bound)) at.push(G.symlog.position(edges, bound));
    }
    const middle = (edges.length - 1) / 2;
    const reach = Math.max(8, ...at.map((one) => Math.abs(one - middle) + 2.5));
    return [Math.max(0, middle - reach), Math.min(edges.length - 1, middle + reach)];
  }

  function xaxis(edges, range, node) {
    const { at, text } = G.symlog.ticks(edges, node.clientWidth / (range[1] - range[0]) < EVERY / 4 ? 2 : 1);
    return { title: "log s, nats per token", tickvals: at, ticktext: text, range, zeroline: false };
  }

  /* Of one step, from its responses. Gives the counts it drew. */
  function drawUnits(panel, units, minibatch, band) {
    const edges = G.symlog.standardEdges();
    const rows = chosenRows(units, minibatch);
    if (!rows.length) {
      panel.say(minibatch === 1 ? "No response of the first minibatch has A \u2260 0 and a measured log s." : "No response has A \u2260 0 and a measured log s here: with one minibatch a step, or without any advantage, there is nothing to draw.");
      return null;
    }
    const counts = sort(units, rows, band, edges);
    const lengths = rows.map((row) => units.length[row]);
    const total = (kind) => counts[kind].reduce((sum, count) => sum + count, 0);
    const filled = G.range(edges.length - 1).filter((bin) => KINDS.some(([kind]) => counts[kind][bin]));
    draw(panel, edges, counts, band, lengths, filled, `Histogram of log s: ${rows.length} responses, ${total("cut")} cut, ${total("outside")} outside the band and not cut`);
    return { total: rows.length, cut: total("cut"), outside: total("outside") };
  }

  /* Of one step whose responses cannot be opened, from the recorded counts. */
  function drawCounts(panel, edges, counts, band) {
    const none = counts.map(() => 0);
    const filled = G.range(counts.length).filter((bin) => counts[bin] > 0);
    draw(panel, edges, { kept: counts, outside: none, cut: none }, band, [], filled, `Histogram of log s: ${counts.reduce((sum, one) => sum + one, 0)} responses`);
  }

  function draw(panel, edges, counts, band, lengths, filled, summary) {
    const make = () => {
      const range = window_(edges, filled, band, lengths);
      return {
        traces: bars(edges, counts),
        layout: {
          barmode: "stack", bargap: 0, ...bandMarks(edges, band, lengths), margin: { l: 52, r: 14, t: 22, b: 48 },
          xaxis: xaxis(edges, range, panel.chart), yaxis: { title: "responses", rangemode: "tozero", nticks: 6 },
        },
      };
    };
    G.draw(panel, make, { summary });
  }

  /* The band in force at each step, as lines over the heat map. */
  function bandLines(found, edges) {
    const colours = G.theme.colours();
    const line = (values, bound) => ({
      type: "scatter", mode: "lines", x: found.step, y: values.map((value) => (G.isNumber(value) ? G.symlog.position(edges, bound(value)) : null)),
      line: { color: colours.bad, width: 1.6 }, showlegend: false, hoverinfo: "skip", connectgaps: false,
    });
    return [line(found.low, (low) => (low < 1 ? Math.log1p(-low) : -10)), line(found.high, Math.log1p)];
  }

  function drawOverTime(panel, found, ctx) {
    const { edges } = found;
    const shares = found.counts.map((counts) => {
      const total = counts.reduce((sum, count) => sum + count, 0);
      return counts.map((count) => (total ? count / total : null));
    });
    const filled = G.range(edges.length - 1).filter((bin) => found.counts.some((counts) => counts[bin] > 0));
    if (!filled.length) return panel.say("The histograms hold no response yet.");
    const colours = G.theme.colours;
    const make = () => {
      const range = window_(edges, filled, null, []);
      const { at, text } = G.symlog.ticks(edges, 1);
      const z = G.range(edges.length - 1).map((bin) => shares.map((share) => share[bin]));
      const map = {
        type: "heatmap", x: found.step, y: G.range(edges.length - 1).map((bin) => bin + 0.5), z, colorscale: colours().ramp, zmin: 0, zmax: G.fit.quantile(z.flat().filter((one) => one > 0), 0.99) || 1,
        text: G.range(edges.length - 1).map((bin) => found.step.map(() => G.symlog.span(edges, bin))),
        hovertemplate: "step %{x}<br>%{text}<br>%{z:.3f} of the responses<extra></extra>",
        colorbar: { thickness: 8, outlinewidth: 0, tickfont: { size: 10, color: colours().soft }, nticks: 4 },
      };
      const chosen = ctx.step === null ? [] : [{ type: "line", x0: ctx.step, x1: ctx.step, yref: "paper", y0: 0, y1: 1, line: { color: colours().ink, width: 1 } }];
      return {
        traces: [map, ...bandLines(found, edges)],
        layout: { shapes: chosen, xaxis: { title: "step", tickformat: ",d", showgrid: false }, yaxis: { title: "log s, nats", tickvals: at, ticktext: text, range, zeroline: false, showgrid: false } },
      };
    };
    G.draw(panel, make, { summary: `Heat map of log s over ${found.step.length} steps with the band in force`, click: (point) => G.chooseStep(Number(point.x)) });
    return null;
  }

  G.trustHistogram = { drawUnits, drawCounts, drawOverTime, chosenRows };
})();
