/* One sentence about the run, worked out from its numbers, that says no more than they do. */
(function () {
  "use strict";
  const G = window.G;
  const WINDOW = 5; // steps at either end, as the alarms use
  const ERRORS = 3; // standard errors that a change must exceed to be named
  const ALIKE = 4; // n responses of one step count as n / 4: those of a group are alike

  /* Mean reward over some rows of the table, and its standard error. */
  function average(table, rows) {
    const { columns } = table;
    const kept = rows.filter((at) => G.isNumber(columns["reward/mean"][at]));
    const value = G.fit.mean(kept.map((at) => columns["reward/mean"][at]));
    const variance = kept.map((at) => {
      const count = (columns["step/responses"] || [])[at];
      const std = (columns["reward/std"] || [])[at];
      return G.isNumber(count) && G.isNumber(std) && count > 0 ? (std * std * ALIKE) / count : null;
    });
    const known = variance.length > 0 && variance.every(G.isNumber);
    return { value, error: known ? Math.sqrt(variance.reduce((sum, one) => sum + one, 0)) / kept.length : null };
  }

  /* {before, after, width, change: "rose" | "fell" | "still" | "unknown", steps} or null. */
  function rewardChange(table) {
    const column = table.columns["reward/mean"];
    if (!column) return null;
    const rows = G.range(table.step.length).filter((at) => G.isNumber(column[at]));
    if (rows.length < 2) return null;
    const width = Math.max(1, Math.min(WINDOW, Math.floor(rows.length / 2)));
    const before = average(table, rows.slice(0, width));
    const after = average(table, rows.slice(-width));
    const error = G.isNumber(before.error) && G.isNumber(after.error) ? Math.hypot(before.error, after.error) : null;
    const difference = after.value - before.value;
    const clear = error !== null && Math.abs(difference) > ERRORS * error;
    const change = error === null ? "unknown" : !clear ? "still" : difference > 0 ? "rose" : "fell";
    return { before: before.value, after: after.value, width, change, steps: table.step[rows[rows.length - 1]] };
  }

  function rewardWords(found, status) {
    if (!found) return status === "empty" ? "No step is recorded yet." : "Fewer than two steps have a reward, so nothing can be said about it.";
    const { before, after, width, change, steps } = found;
    const over = `over ${G.plural(steps, "step")}` + (width > 1 ? ` (means of the first and last ${width})` : "");
    if (change === "rose") return `Reward rose from ${G.two(before)} to ${G.two(after)} ${over}`;
    if (change === "fell") return `Reward fell from ${G.two(before)} to ${G.two(after)} ${over}`;
    if (change === "still") return `Reward went from ${G.two(before)} to ${G.two(after)} ${over}, which is within its noise`;
    return `Reward went from ${G.two(before)} to ${G.two(after)} ${over}`;
  }

  function heldOutWords(headline) {
    const now = headline.pass_at_1;
    const before = headline.pass_at_1_before;
    if (!now) return "nothing was asked of held-out prompts";
    if (!before || before.step === now.step) return `held-out pass@1 is ${G.two(now.value)} at step ${now.step}, without an evaluation before it to compare with`;
    const apart = now.low > before.high ? "rose" : now.high < before.low ? "fell" : "";
    const move = `from ${G.two(before.value)} to ${G.two(now.value)}`;
    return apart ? `held-out pass@1 ${apart} ${move}` : `held-out pass@1 went ${move}, and the two intervals overlap`;
  }

  function alarmWords(alarms) {
    if (!alarms.length) return "No alarm.";
    const rules = [...new Set(alarms.map((alarm) => alarm.rule))];
    return `${G.plural(alarms.length, "alarm")}: ${G.listed(rules.slice(0, 4).map((rule) => G.oneLine(rule, 40)))}${rules.length > 4 ? " and others" : ""}.`;
  }

  /* {text, tone: "up" | "down" | "level"} */
  G.verdict = function (run) {
    const { overview, table } = run;
    const found = rewardChange(table);
    const first = rewardWords(found, overview.status);
    if (!found) return { text: first, tone: "level" };
    const alarms = overview.alarms || [];
    const text = `${first}; ${heldOutWords(overview.headline)}. ${alarmWords(alarms)}`;
    const tone = alarms.length ? "down" : { rose: "up", fell: "down" }[found.change] || "level";
    return { text, tone };
  };
})();
