/* View 3: what drives it. Tokens of one response, the pairs that cancel, the tokens of the step. */
(function () {
  "use strict";
  const G = window.G;
  const parts = {};
  const loadOne = G.latest();
  const loadUnits = G.latest();
  const loadTop = G.latest();
  let mark = null;

  const FEW_PAIRS = 6; // as high as the chart beside them
  const NAMES = ["attribution/*"];

  function mount(section) {
    const grid = G.grid(section);
    parts.one = G.panel(grid, { title: "A response, token by token", define: "token_log_ratio", wide: true });
    parts.picker = G.el("div", { class: "picker" });
    parts.facts = G.el("div", { class: "facts" });
    parts.prompt = G.el("div", {});
    parts.tokens = G.el("div", {});
    parts.one.body.append(parts.picker, parts.facts, parts.prompt, parts.tokens);
    parts.pairs = G.panel(grid, { title: "Pairs that cancel", define: "pair" });
    parts.position = G.panel(grid, { title: "Along the response", chart: "tokens_along", define: "token_log_ratio" });
    parts.top = G.panel(grid, { title: "Tokens that moved most in this step", chart: "top_tokens", define: "token_share", wide: true, tall: true });
    parts.shares = G.panel(grid, { title: "Share of the movement in the largest tokens", chart: "top_share", define: "attribution/top1_share" });
    parts.cancelled = G.panel(grid, { title: "Share of the movement that cancels", chart: "cancelled", define: "attribution/cancelled_share" });
  }

  /* Responses with a log s first, the largest movement first: those are worth a look. A report does
   * not hold all of them. */
  function ranked(units, ctx) {
    const size = (row) => (G.isNumber(units.log_s[row]) ? Math.abs(units.log_s[row]) : -1);
    const held = G.range(units.row.length).filter((at) => G.source.holds(ctx.first.id, ctx.step, units.row[at]));
    return held.sort((a, b) => size(b) - size(a) || a - b);
  }

  const nameOf = (units, at) =>
    `row ${units.row[at]} \u00b7 group ${units.group[at]}, sample ${units.sample[at]} \u00b7 log s ${G.short(units.log_s[at])} \u00b7 A ${G.signed(units.advantage[at], G.two)}`;

  function picker(units, order, row) {
    const at = order.findIndex((one) => units.row[one] === row);
    const go = (to) => order[to] !== undefined && choose(units.row[order[to]]);
    const select = G.el("select", { "aria-label": "Response, the largest movement first", on: { change: () => choose(Number(select.value)) } },
      order.map((one) => G.el("option", { value: String(units.row[one]) }, nameOf(units, one))));
    select.value = String(row);
    const back = G.button("\u2190", () => go(at - 1), { "aria-label": "Response with more movement" });
    const on = G.button("\u2192", () => go(at + 1), { "aria-label": "Response with less movement" });
    back.disabled = at <= 0;
    on.disabled = at >= order.length - 1;
    const modes = Object.entries(G.tokens.MODES).map(([key, mode]) => [key, mode.label]);
    const chosen = G.state.get("color") || "ratio";
    return [
      G.el("div", { class: "picker-row" }, back, select, on),
      G.choice("Coloured by", modes, chosen, (color) => G.state.set({ color: color === "ratio" ? null : color })),
    ];
  }

  const choose = (row) => G.state.set({ step: G.currentStep(), row });

  function cutWords(answer) {
    if (answer.cut_low > 0) return `low${answer.cut_low > 1 ? ` (${answer.cut_low} tokens)` : ""}`;
    return answer.cut_high > 0 ? `high${answer.cut_high > 1 ? ` (${answer.cut_high} tokens)` : ""}` : "not cut";
  }

  function facts(answer, step) {
    const fact = (label, value) => G.el("span", { class: "fact" }, G.el("small", {}, label + " "), value);
    const number = (name, show) => G.number(name, answer[name], { show, step });
    return [
      fact("reward", number("reward", G.two)),
      fact("advantage", number("advantage", (value) => G.signed(value, G.two))),
      fact("log s", number("log_s")),
      fact("length", number("length")),
      fact("cut", G.el("span", { tabindex: "0", data: { define: "cut" } }, cutWords(answer))),
      fact("minibatch", number("minibatch")),
      fact("finish", G.el("span", { tabindex: "0", data: { define: "finish" } }, G.oneLine(answer.finish, 30))),
      fact("source", G.oneLine(answer.source, 60)),
      answer.skipped ? fact("skipped", G.oneLine(answer.skipped, 80)) : null,
      answer.failure ? fact("verifier", G.longText(answer.failure, 200)) : null,
    ];
  }

  function pairs(answer) {
    const values = G.tokens.MODES.ratio.values(answer.tokens);
    if (!values) return parts.pairs.say("No update ran this response, so no token has moved.");
    const found = answer.pairs || [];
    if (!found.length) return parts.pairs.say("All tokens of this response moved one way: nothing cancels.");
    const one = (at) => [G.el("code", {}, G.oneLine(G.tokens.tokenText(answer.tokens, at), 24)), G.el("small", {}, ` #${at} ${G.signed(values[at])}`)];
    const item = ([a, b, amount]) =>
      G.el("li", {}, G.button([one(a), " \u21c4 ", one(b)], () => mark && mark([a, b]), { class: "pair" }), G.el("span", { class: "soft" }, " cancels ", G.number("pair", amount, { define: "pair", plain: true })));
    const list = G.el("ol", { class: "pairs" }, found.slice(0, FEW_PAIRS).map(item));
    const rest = found.slice(FEW_PAIRS);
    const more = rest.length ? G.button(`show ${rest.length} more`, () => { G.append(list, rest.map(item)); more.remove(); }, { class: "link" }) : null;
    parts.pairs.say(null);
    G.fill(parts.pairs.body, list, more);
    parts.pairs.note("Press a pair to see its tokens marked in the response.");
    return null;
  }

  /* The tokens' values by position: where in the response the movement sits. */
  function along(answer, modeName) {
    const mode = G.tokens.MODES[modeName] || G.tokens.MODES.ratio;
    const values = mode.values(answer.tokens);
    if (!values) return parts.position.say(mode.none);
    const make = () => {
      const { series } = G.theme.colours();
      return {
        traces: [{
          type: "bar", x: G.range(values.length), y: values, marker: { color: values.map((value) => (value < 0 ? series[0] : series[1])) },
          customdata: G.range(values.length).map((at) => G.plotText(G.tokens.tokenText(answer.tokens, at), 24)),
          hovertemplate: "token %{x}: %{customdata}<br>%{y:.4~g} nats<extra></extra>",
        }],
        layout: { bargap: 0.1, xaxis: { title: "position in the response" }, yaxis: { title: `${mode.label}, nats`, exponentformat: "power", nticks: 6 } },
      };
    };
    G.draw(parts.position, make, { summary: `${mode.label} of ${values.length} tokens by position`, click: (point) => mark && mark([point.x]) });
    return null;
  }

  function showOne(answer, ctx) {
    parts.one.say(null);
    const mode = G.state.get("color") || "ratio";
    const key = JSON.stringify([ctx.first.id, ctx.step, answer.row, mode, document.documentElement.dataset.theme]);
    if (parts.tokens.filledWith === key) return;
    parts.tokens.filledWith = key;
    G.fill(parts.facts, facts(answer, ctx.step));
    G.fill(parts.prompt, G.el("details", { class: "prompt" }, G.el("summary", {}, "Prompt ", G.el("span", { class: "soft" }, G.oneLine(answer.prompt, 90))), G.el("pre", { class: "text" }, G.longText(answer.prompt, 4000))));
    mark = G.tokens.render(parts.tokens, answer, mode);
    pairs(answer);
    along(answer, mode);
    parts.one.note(`About ${G.about(ctx, ctx.step)}.`);
  }

  function top(answer, ctx) {
    const rows = answer.rows.slice(0, 30).reverse();
    if (!rows.length) return parts.top.say("No token of this step has a log-ratio: no response with A \u2260 0 was updated in minibatch 2 or later.");
    parts.top.chart.style.height = `${90 + 22 * rows.length}px`;
    const make = () => {
      const { series } = G.theme.colours();
      return {
        traces: [{
          type: "bar", orientation: "h", x: rows.map((row) => row.share), y: G.range(rows.length), marker: { color: rows.map((row) => (row.mean < 0 ? series[0] : series[1])) },
          customdata: rows.map((row) => [G.plotText(row.text ?? `[${row.id}]`, 40), row.count, G.short(row.mean), row.responses, row.id]),
          hovertemplate: "%{customdata[0]} (id %{customdata[4]})<br>%{x:.3f} of the step's movement<br>%{customdata[1]} times in %{customdata[3]} responses, mean %{customdata[2]} nats<extra></extra>",
        }],
        layout: {
          bargap: 0.25, margin: { l: 90, r: 14, t: 10, b: 44 }, xaxis: { title: "share of all |log-ratio| of the step", rangemode: "tozero" },
          yaxis: { tickvals: G.range(rows.length), ticktext: rows.map((row) => "\u2009" + G.plotText(JSON.stringify(row.text ?? `[${row.id}]`).slice(1, -1).replace(/^ +| +$/g, (gap) => "\u2423".repeat(gap.length)), 18)), showgrid: false, range: [-0.6, rows.length - 0.4] },
        },
      };
    };
    G.draw(parts.top, make, { summary: `Tokens that moved most: ${answer.rows.slice(0, 5).map((row) => `${row.text ?? row.id} ${G.share(row.share)}`).join(", ")}` });
    parts.top.note(`About ${G.about(ctx, ctx.step)}. Orange: likelier on average, blue: less likely.`);
    return null;
  }

  function fail(ctx, message) {
    parts.one.say(message);
    parts.pairs.say("No response is open.");
    parts.position.say("No response is open.");
    parts.tokens.filledWith = null;
  }

  function responseOf(ctx, units) {
    if (!units.row.length) return fail(ctx, "This step has no responses.");
    const wanted = G.state.row();
    const order = ranked(units, ctx);
    const row = wanted !== null && units.row.includes(wanted) ? wanted : units.row[order[0]];
    G.fillOnce(parts.picker, JSON.stringify([ctx.first.id, ctx.step, row, G.state.get("color")]), () => picker(units, order, row));
    loadOne(G.store.response(ctx.first.id, ctx.step, row), (answer) => showOne(answer, ctx), (error) => fail(ctx, error.message));
    return null;
  }

  function update(ctx) {
    const { id } = ctx.first;
    loadUnits(G.store.units(id, ctx.step), (units) => responseOf(ctx, units), (error) => fail(ctx, error.message));
    loadTop(G.store.topTokens(id, ctx.step), (answer) => top(answer, ctx), (error) => parts.top.say(error.message));
    const none = "Not recorded: it needs responses with A \u2260 0 in minibatch 2 or later.";
    const options = { unit: "share", chosen: true, missing: none, yaxis: { range: [0, 1.04] } };
    G.lines(parts.shares, ctx, [1, 3, 10].map((k, at) => ({ name: `attribution/top${k}_share`, label: `largest ${k}`, slot: at })), options);
    G.lines(parts.cancelled, ctx, [{ name: "attribution/cancelled_share", label: "cancelled" }], options);
  }

  G.view({
    key: "drives", title: "What drives it", usesSteps: "responses", names: NAMES, mount, update,
    lead: "Which tokens moved a response's ratio, and which of them pull against one another.",
  });
})();
