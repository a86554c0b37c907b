/* The answers of a report: from the data inside the page. It filters and sorts as the server does. */
(function () {
  "use strict";
  const G = window.G;

  const wildcard = (pattern) =>
    new RegExp("^" + pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*") + "$");

  function metrics(held, names, after) {
    const wanted = names.map(wildcard);
    const from = held.step.findIndex((step) => step > after || after === 0);
    const start = from < 0 ? held.step.length : from;
    const columns = {};
    for (const name of Object.keys(held.columns)) {
      if (wanted.some((one) => one.test(name))) columns[name] = held.columns[name].slice(start);
    }
    return { step: held.step.slice(start), time: held.time.slice(start), columns };
  }

  function histograms(held, after) {
    const rows = G.range(held.step.length).filter((at) => held.step[at] > after || after === 0);
    const pick = (values) => rows.map((at) => values[at]);
    return { edges: held.edges, step: pick(held.step), counts: pick(held.counts), low: pick(held.low), high: pick(held.high) };
  }

  function searched(row, text) {
    const wanted = text.toLowerCase();
    return [row.prompt, row.text, row.prompt_id, row.failure].some((part) => String(part || "").toLowerCase().includes(wanted));
  }

  const SIGNS = { positive: (a) => a > 0, negative: (a) => a < 0, zero: (a) => a === 0 };
  const CUTS = {
    low: (row) => row.cut_low > 0,
    high: (row) => row.cut_high > 0,
    any: (row) => row.cut_low + row.cut_high > 0,
    none: (row) => row.cut_low + row.cut_high === 0,
  };

  const TESTS = {
    search: searched,
    group: (row, value) => row.group === Number(value),
    finish: (row, value) => row.finish === value,
    cut: (row, value) => CUTS[value](row),
    advantage: (row, value) => SIGNS[value](row.advantage),
    verdict: (row, value) => (value === "failed") === (row.reward === null),
    reward_min: (row, value) => row.reward !== null && row.reward >= Number(value),
    reward_max: (row, value) => row.reward !== null && row.reward <= Number(value),
    length_min: (row, value) => row.length >= Number(value),
    length_max: (row, value) => row.length <= Number(value),
    minibatch: (row, value) => row.minibatch === Number(value),
  };

  /* Rows without the value come last, either way. */
  function compare(key, descending) {
    return function (a, b) {
      if (a[key] === null || b[key] === null) return (a[key] === null) - (b[key] === null);
      return (descending ? b[key] - a[key] : a[key] - b[key]) || a.row - b.row;
    };
  }

  function responses(held, query) {
    const tests = Object.entries(query).filter(([key, value]) => key in TESTS && value !== "" && value !== null);
    const matched = held.rows.filter((row) => tests.every(([key, value]) => TESTS[key](row, value)));
    matched.sort(compare(query.sort || "row", Boolean(Number(query.descending || 0))));
    const offset = Number(query.offset || 0);
    const rows = matched.slice(offset, offset + Number(query.limit || 50));
    return { total: held.rows.length, matched: matched.length, offset, rows };
  }

  function missing(what, steps) {
    const kept = steps && steps.length ? `it holds those of step ${G.listed(steps)}` : "it holds none";
    throw new Error(`${what} is not in this report: ${kept}. Open the run with 'gspo dashboard' for the rest`);
  }

  function ofStep(held, id, step, what) {
    const steps = held[id] || {};
    return steps[step] || missing(`${what} of step ${step}`, Object.keys(steps));
  }

  function recipe(held, id, against) {
    const answer = held[id] || missing("the recipe");
    if (against && !answer.differences) missing("the other run's recipe");
    return answer;
  }

  /* The same functions as the server's, over the answers that the report holds. */
  G.reportSource = function (answers) {
    const reply = (make) => new Promise((resolve) => resolve(make()));
    const listed = answers.runs;
    return {
      report: true,
      runs: () => reply(() => listed),
      pulse: () => reply(() => ({ list: "report", runs: {} })),
      overview: (id) => reply(() => answers.overview[id] || missing("this run")),
      metrics: (id, names, after) => reply(() => metrics(answers.metrics[id] || missing("this run"), names, after || 0)),
      histograms: (id, name, after) =>
        reply(() => histograms((answers.histograms[id] || {})[name] || missing(name), after || 0)),
      units: (id, step) => reply(() => ofStep(answers.units, id, step, "the list of responses")),
      responses: (id, step, query) => reply(() => responses(ofStep(answers.responses, id, step, "the text of the responses"), query || {})),
      holds: (id, step, row) => ofStep(answers.responses, id, step, "the text of the responses").rows.some((one) => one.row === row),
      response: (id, step, row) =>
        reply(() => {
          const held = ofStep(answers.responses, id, step, "the text of the responses");
          return held.rows.find((one) => one.row === row) || missing(`response ${row} of step ${step}`, []);
        }),
      topTokens: (id, step) => reply(() => ofStep(answers.top_tokens, id, step, "the list of tokens")),
      recipe: (id, against) => reply(() => recipe(answers.recipe, id, against)),
      definitions: () => reply(() => answers.definitions),
    };
  };
})();
