/* Charts over steps: one line for each run and metric, with the step chosen, alarms and events marked. */
(function () {
  "use strict";
  const G = window.G;
  const SMOOTH_FROM = 120; // steps: below, every point can be seen
  const SERIES_DASH = ["solid", "dash", "dot", "dashdot", "longdash"];

  /* With one run colour tells the metrics apart; with several it tells the runs apart, and dashes the
     metrics; with several runs and one metric dashes repeat what colour says. */
  function look(ctx, run, at, count, series) {
    if (ctx.runs.length === 1) {
      return { color: series.color || G.theme.series(series.slot ?? at), dash: series.dash || "solid" };
    }
    const dash = count > 1 ? SERIES_DASH[at % SERIES_DASH.length] : G.theme.dash(run.slot);
    return { color: G.theme.series(run.slot), dash };
  }

  function points(run, name) {
    const values = run.table.columns[name];
    if (!values) return null;
    const x = [];
    const y = [];
    run.table.step.forEach((step, at) => {
      if (step === 0 && !G.isNumber(values[at])) return; // step 0 holds evaluations only
      x.push(step);
      y.push(values[at]);
    });
    return y.some(G.isNumber) ? { x, y } : null;
  }

  function sparse(y) {
    const count = y.filter(G.isNumber).length;
    return count < y.length / 2 || count < 12;
  }

  function compact(found) {
    const keep = G.range(found.x.length).filter((at) => G.isNumber(found.y[at]));
    return { x: keep.map((at) => found.x[at]), y: keep.map((at) => found.y[at]) };
  }

  function traceOf(ctx, run, at, all, options) {
    const series = all[at];
    let found = points(run, series.name);
    if (!found) return [];
    const dots = sparse(found.y);
    if (dots) found = compact(found);
    const several = ctx.runs.length > 1;
    const name = several ? `${G.plotText(run.overview.name, 24)}: ${G.plotText(series.label)}` : G.plotText(series.label);
    const line = { ...look(ctx, run, at, all.length, series), width: 1.8 };
    const unit = series.unit ? " " + series.unit : "";
    const base = {
      type: "scatter", x: found.x, y: found.y, name, line, mode: dots ? "lines+markers" : "lines",
      marker: { size: 6, color: line.color }, cliponaxis: !dots, connectgaps: false, showlegend: !several,
      hovertemplate: `%{y:.4~g}${unit}<extra>${name}</extra>`,
    };
    const width = Math.round(found.x.length / 40);
    if (!options.smooth || found.x.length < SMOOTH_FROM) return [base];
    const mean = { ...base, y: G.fit.running(found.y, width), name: `${name}, mean of ${width} steps` };
    return [{ ...base, opacity: 0.3, line: { ...line, width: 1 }, showlegend: false, hoverinfo: "skip", hovertemplate: undefined }, mean];
  }

  /* With several runs the page's legend names the runs; a chart's own names its dashes, in grey. */
  function dashLegend(ctx, series) {
    if (ctx.runs.length < 2 || series.length < 2) return [];
    const { soft } = G.theme.colours();
    return series.map((one, at) => ({
      type: "scatter", mode: "lines", x: [null], y: [null], name: G.plotText(one.label), hoverinfo: "skip",
      line: { color: soft, width: 1.8, dash: SERIES_DASH[at % SERIES_DASH.length] },
    }));
  }

  /* Vertical lines: the step chosen, alarms of all runs, clip events of the first. */
  function marks(ctx, options) {
    const colours = G.theme.colours();
    const shapes = [];
    const annotations = [];
    const upright = (step, color, dash) =>
      shapes.push({ type: "line", x0: step, x1: step, yref: "paper", y0: 0, y1: 1, line: { color, width: 1, dash }, layer: "below" });
    const flag = (step, text, words, color) =>
      annotations.push({
        x: step, y: 1, yref: "paper", yanchor: "bottom", text, showarrow: false, font: { color, size: 12 },
        hovertext: words, hoverlabel: { bgcolor: colours.card, bordercolor: color, font: { color: colours.ink } },
      });
    if (options.alarms) {
      const several = ctx.runs.length > 1;
      for (const run of ctx.runs) {
        const color = several ? G.theme.series(run.slot) : colours.bad;
        const of = several ? ` of ${G.plotText(run.overview.name, 24)}` : "";
        for (const [step, rules] of grouped(run.overview.alarms || [], (alarm) => alarm.rule)) {
          upright(step, color, "dot");
          flag(step, "\u25b2", `alarm at step ${step}${of}: ${G.plotText(rules.join(", "))}`, color);
        }
      }
    }
    if (options.events) {
      for (const [step, kinds] of grouped(G.clipEvents(ctx.first.overview), (event) => event.kind)) {
        upright(step, colours.soft, "dot");
        flag(step, "\u25c6", `step ${step}: ${G.plotText(kinds.join(", "))}`, colours.soft);
      }
    }
    if (options.chosen && ctx.step !== null) upright(ctx.step, colours.ink, "solid");
    return { shapes, annotations };
  }

  function grouped(items, word) {
    const found = new Map();
    for (const item of items) found.set(item.step, (found.get(item.step) || []).concat(word(item)));
    return found;
  }

  /* Level lines: a wanted value, drawn across and named. */
  function levels(options) {
    const colours = G.theme.colours();
    return (options.levels || []).filter((level) => G.isNumber(level.y)).map((level) => ({
      type: "line", xref: "paper", x0: 0, x1: 1, y0: level.y, y1: level.y,
      line: { color: colours.soft, width: 1, dash: "dash" },
      label: { text: G.plotText(level.label), textposition: "start", yanchor: "bottom", font: { size: 10, color: colours.soft } },
    }));
  }

  function summary(ctx, series, title) {
    const said = series.map((one) => {
      const found = points(ctx.first, one.name);
      if (!found) return null;
      const kept = compact(found);
      return `${one.label}: ${G.short(kept.y[0])} at step ${kept.x[0]}, ${G.short(G.last(kept.y))} at step ${kept.x[kept.x.length - 1]}`;
    });
    return `${title}. ${said.filter(Boolean).join("; ")}`;
  }

  function layout(ctx, options) {
    const marked = marks(ctx, options);
    return {
      shapes: levels(options).concat(marked.shapes, options.shapes || []),
      annotations: marked.annotations,
      hovermode: "x unified", margin: { l: 52, r: 14, t: 18, b: 40 },
      legend: marked.annotations.length ? { y: 1.09 } : {}, // above the flags
      showlegend: options.legend ?? true,
      xaxis: { title: "step", hoverformat: "d", tickformat: ",d", nticks: 8, rangemode: "nonnegative" },
      yaxis: { title: options.unit, rangemode: options.log || options.free ? "normal" : "tozero", type: options.log ? "log" : "linear",
        nticks: 6, ...(options.log ? { dtick: options.dtick } : {}), ...options.yaxis },
    };
  }

  /* series: [{name, label, color?}]. options: unit, log, alarms, events, chosen, levels, smooth,
     extra(traces) adds traces, missing: words where nothing was recorded. */
  G.lines = function (panel, ctx, series, options) {
    const some = ctx.runs.some((run) => series.some((one) => points(run, one.name)));
    if (!some) return panel.say(options.missing || `Not recorded in this run: ${series.map((one) => one.name).join(", ")}.`);
    const title = panel.root.querySelector("h3").firstChild.textContent;
    G.draw(
      panel,
      () => {
        const traces = ctx.runs.flatMap((run) => series.flatMap((_, at) => traceOf(ctx, run, at, series, options)));
        const extra = (options.extra ? options.extra(ctx) : []).concat(dashLegend(ctx, series));
        return { traces: extra.concat(traces), layout: layout(ctx, { legend: traces.length > 1, ...options }) };
      },
      { summary: summary(ctx, series, title), click: (point) => ctx.view.usesSteps && G.chooseStep(Number(point.x)) },
    );
    return null;
  };

  /* Shares that add up, stacked, for one run; lines where several runs lie over one another. */
  G.stacked = function (panel, ctx, series, options) {
    const found = series.filter((one) => points(ctx.first, one.name));
    if (ctx.runs.length > 1 || !found.length) return G.lines(panel, ctx, series, options);
    G.draw(
      panel,
      () => {
        const traces = found.map((one, at) => {
          const color = one.color || G.theme.series(one.slot ?? at);
          const { x, y } = points(ctx.first, one.name);
          return {
            type: "scatter", mode: "lines", stackgroup: "all", x, y, name: G.plotText(one.label),
            line: { width: 0.8, color }, fillcolor: color + "b0", hovertemplate: `%{y:.3f}<extra>${G.plotText(one.label)}</extra>`,
          };
        });
        return { traces, layout: layout(ctx, { ...options, yaxis: { range: options.top ? [0, options.top] : undefined } }) };
      },
      { summary: summary(ctx, found, options.title || ""), click: (point) => ctx.view.usesSteps && G.chooseStep(Number(point.x)) },
    );
    return null;
  };

  const CLIP_EVENTS = ["clip_fixed", "refit", "clip_rescaled"];
  G.clipEvents = (overview) => (overview.events || []).filter((event) => CLIP_EVENTS.includes(event.kind));
})();
