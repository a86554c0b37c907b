/* What was fetched, kept so that only news is asked for. A table belongs to one run and one view:
   the names that the view draws, step by step. */
(function () {
  "use strict";
  const G = window.G;
  const KEPT_STEPS = 12; // answers about single steps that are kept: some MB at most
  const MOST_HUMPS = 800; // histograms over time that are kept before they are thinned again
  const KEPT_TABLES = 60; // runs times views

  const overviews = new Map(); // id -> {version, answer}
  const tables = new Map(); // id + view -> {version, step, time, columns}
  const humps = new Map(); // id -> {version, answer} of histograms
  const steps = new Map(); // address -> promise, oldest first

  function trim(map, most) {
    while (map.size > most) map.delete(map.keys().next().value);
  }

  async function overview(id, version) {
    const held = overviews.get(id);
    if (held && held.version === version) return held.answer;
    const answer = await G.source.overview(id);
    overviews.set(id, { version, answer });
    return answer;
  }

  function empty() {
    return { version: null, step: [], time: [], columns: {} };
  }

  /* Rows of `news` after what is held; a name that is new or missing is null where it has no value. */
  function joined(held, news) {
    const first = news.step.length ? news.step[0] : Infinity;
    let keep = held.step.findIndex((step) => step >= first);
    if (keep < 0) keep = held.step.length;
    const columns = {};
    for (const name of new Set([...Object.keys(held.columns), ...Object.keys(news.columns)])) {
      const old = held.columns[name] || new Array(held.step.length).fill(null);
      columns[name] = old.slice(0, keep).concat(news.columns[name] || new Array(news.step.length).fill(null));
    }
    return { step: held.step.slice(0, keep).concat(news.step), time: held.time.slice(0, keep).concat(news.time), columns };
  }

  /* The last step may have grown (an evaluation adds to it), so it is asked for again. */
  async function table(id, view, names, version, lastStep) {
    const key = `${id} ${view}`;
    let held = tables.get(key) || empty();
    if (held.version !== null && held.version === version) return held;
    const newest = held.step[held.step.length - 1];
    if (newest > lastStep) {
      held = empty(); // the run was resumed at an earlier step
      steps.clear();
    }
    const after = held.step.length > 1 ? held.step[held.step.length - 2] : 0;
    const news = await G.source.metrics(id, names, after);
    const next = { ...joined(after ? held : empty(), news), version };
    tables.delete(key);
    tables.set(key, next);
    trim(tables, KEPT_TABLES);
    return next;
  }

  /* Rows of `news` after those that are held. */
  function grown(held, news) {
    const answer = { edges: held.edges };
    for (const key of ["step", "counts", "low", "high"]) answer[key] = held[key].concat(news[key]);
    return answer;
  }

  /* A whole answer is thinned to some hundred steps; what comes after it is added until there are twice
     as many, then all is asked for again. A run that was resumed earlier starts anew too. */
  async function histograms(id, name, version, lastStep) {
    const held = humps.get(id);
    if (held && held.version === version) return held.answer;
    const newest = held ? held.answer.step[held.answer.step.length - 1] : undefined;
    const more = newest !== undefined && newest <= lastStep && held.answer.step.length < MOST_HUMPS;
    const news = await G.source.histograms(id, name, more ? newest : 0);
    const answer = more ? grown(held.answer, news) : news;
    humps.set(id, { version, answer });
    trim(humps, KEPT_STEPS);
    return answer;
  }

  /* One answer about a step, asked once. A failure is not kept: the next call asks again. */
  function once(address, asked) {
    if (!steps.has(address)) {
      steps.set(address, asked());
      trim(steps, KEPT_STEPS);
      steps.get(address).catch(() => steps.delete(address));
    }
    return steps.get(address);
  }

  G.store = {
    overview,
    table,
    histograms,
    units: (id, step) => once(`units ${id} ${step}`, () => G.source.units(id, step)),
    topTokens: (id, step) => once(`top ${id} ${step}`, () => G.source.topTokens(id, step)),
    response: (id, step, row) => once(`one ${id} ${step} ${row}`, () => G.source.response(id, step, row)),
    responses: (id, step, query) =>
      once(`many ${id} ${step} ${JSON.stringify(query)}`, () => G.source.responses(id, step, query)),
  };
})();
