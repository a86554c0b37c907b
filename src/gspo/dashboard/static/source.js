/* Where the data comes from: the server that gave this page, or the data inside it (a report). */
(function () {
  "use strict";
  const G = window.G;

  /* The server did not answer at all: it is gone or restarting. Other errors are answers. */
  class Gone extends Error {}
  G.Gone = Gone;

  async function ask(path, query) {
    const pairs = Object.entries(query || {}).flatMap(([key, value]) =>
      [].concat(value).filter((one) => one !== "" && one !== null && one !== undefined).map((one) => [key, one]),
    );
    const address = pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
    let reply;
    try {
      reply = await fetch(address, { credentials: "same-origin", cache: "no-store" });
    } catch (error) {
      throw new Gone(`the server does not answer (${error.message})`);
    }
    const answer = await parsed(reply);
    if (!reply.ok) throw new Error(answer.error || `the server answered ${reply.status} to ${path}`);
    return answer;
  }

  async function parsed(reply) {
    try {
      return await reply.json();
    } catch (error) {
      throw new Error(`the server's answer ${reply.status} is no JSON (${error.message}): reload the page`);
    }
  }

  const MOST_ROWS = 500; // that one answer holds

  /* The server knows no filter by length: then all rows are asked for, and the page picks its own. */
  async function ofLength(path, query) {
    const { length_min: low, length_max: high, offset, limit, ...rest } = query;
    const fits = (row) => !(low && row.length < Number(low)) && !(high && row.length > Number(high));
    const rows = [];
    let answer;
    do {
      answer = await ask(path, { ...rest, offset: answer ? answer.offset + MOST_ROWS : 0, limit: MOST_ROWS });
      rows.push(...answer.rows.filter(fits));
    } while (answer.offset + answer.rows.length < answer.matched && answer.rows.length);
    const from = Number(offset || 0);
    return { total: answer.total, matched: rows.length, offset: from, rows: rows.slice(from, from + Number(limit || 50)) };
  }

  function serverSource() {
    const run = (id) => `/api/runs/${id}`;
    const step = (id, number) => `/api/runs/${id}/steps/${number}`;
    return {
      report: false,
      runs: () => ask("/api/runs"),
      pulse: (ids) => ask("/api/pulse", { run: ids }),
      overview: (id) => ask(`${run(id)}/overview`),
      metrics: (id, names, after) => ask(`${run(id)}/metrics`, { name: names, after: after || 0 }),
      histograms: (id, name, after) => ask(`${run(id)}/histograms`, { name, after: after || 0 }),
      units: (id, number) => ask(`${step(id, number)}/units`),
      responses: (id, number, query) => (query.length_min || query.length_max ? ofLength : ask)(`${step(id, number)}/responses`, query),
      holds: () => true,
      response: (id, number, row, full) => ask(`${step(id, number)}/responses/${row}`, full ? { full: 1 } : {}),
      topTokens: (id, number) => ask(`${step(id, number)}/top_tokens`),
      recipe: (id, against) => ask(`${run(id)}/recipe`, { against }),
      definitions: () => ask("/api/definitions"),
      csv: (id, number) => `${step(id, number)}/responses.csv`,
    };
  }

  const held = document.getElementById("data");
  G.source = held ? G.reportSource(JSON.parse(held.textContent).answers) : serverSource();
})();
