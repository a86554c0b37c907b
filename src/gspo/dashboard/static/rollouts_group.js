/* The responses to one prompt side by side. */
(function () {
  "use strict";
  const G = window.G;
  const SHOWN = 600; // characters of a response before "show more"
  const LARGE = 65536; // characters: above, finding out which way a text runs takes seconds

  function parts(row) {
    const named = Object.entries(row.parts || {});
    if (!named.length) return null;
    return G.el("dl", { class: "parts", tabindex: "0", data: { define: "parts" } }, named.map(([name, value]) => [G.el("dt", {}, G.oneLine(name, 60)), G.el("dd", {}, G.short(value))]));
  }

  /* The rows hold the first 400 characters; the rest is asked for, then shown where it was. */
  function text(ctx, row) {
    const node = G.el("pre", { class: "text" });
    const whole = row.num_chars === undefined || row.num_chars <= row.text.length;
    if (whole) return G.fill(node, G.longText(row.text, SHOWN));
    const more = G.button(`show all ${row.num_chars.toLocaleString("en")} characters`, () => expand(ctx, row, node), { class: "link" });
    return G.fill(node, row.text, "\u2026 ", more);
  }

  async function expand(ctx, row, node) {
    try {
      const answer = await G.source.response(ctx.first.id, ctx.step, row.row, true);
      const cut = answer.num_chars > answer.text.length ? ` \u2026 (${answer.num_chars.toLocaleString("en")} characters; the page shows the first ${answer.text.length.toLocaleString("en")})` : null;
      node.classList.toggle("large", answer.text.length > LARGE);
      G.fill(node, answer.text, cut);
    } catch (error) {
      G.fill(node, row.text, G.el("p", { class: "words" }, error.message));
    }
  }

  const cutWord = (row) => (row.cut_low > 0 ? "cut low" : row.cut_high > 0 ? "cut high" : "not cut");

  function card(ctx, row) {
    const number = (name, show) => G.number(name, row[name], { show, step: ctx.step });
    const scored = row.reward !== null;
    return G.el(
      "article",
      { class: `response ${scored ? "" : "failed"} ${row.row === G.state.row() ? "chosen" : ""}`, data: { row: String(row.row) } },
      G.el("header", {}, G.el("span", { class: "reward" }, scored ? number("reward", G.two) : "no reward"), G.el("span", { class: "soft" }, `sample ${row.sample}`)),
      G.el("p", { class: "facts" }, "A ", number("advantage", (value) => G.signed(value, G.two)), " \u00b7 log s ", number("log_s"), " \u00b7 ", number("length"), " tokens \u00b7 ", cutWord(row), " \u00b7 ", G.oneLine(row.finish, 20)),
      row.failure ? G.el("p", { class: "reason" }, G.el("b", {}, "verifier: "), G.longText(row.failure, 200)) : null,
      text(ctx, row),
      parts(row),
      G.button("its tokens", () => G.state.set({ view: "drives", step: ctx.step, row: row.row }), { class: "link" }),
    );
  }

  function render(node, ctx, answer) {
    const first = answer.rows[0];
    if (!first) return G.fill(node, G.el("p", { class: "words" }, "This group is not among the responses here."));
    const rewards = answer.rows.map((row) => row.reward).filter((reward) => reward !== null);
    const passed = rewards.filter((reward) => reward > 0.5).length;
    return G.fill(
      node,
      G.el("p", {}, `Group ${first.group} of step ${ctx.step}, `, G.oneLine(first.source, 80), `, prompt ${G.oneLine(first.prompt_id, 80)}: `, G.el("b", {}, `${passed} of ${rewards.length} above 0.5`)),
      G.el("pre", { class: "text prompt-text" }, G.longText(first.prompt, 1200)),
      G.el("div", { class: "side-by-side" }, answer.rows.map((row) => card(ctx, row))),
    );
  }

  G.rolloutsGroup = { render };
})();
