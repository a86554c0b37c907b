/* Alarms as cards: what was seen, the likely cause, what to try. The same rule again is counted. */
(function () {
  "use strict";
  const G = window.G;

  function byRule(alarms) {
    const found = new Map();
    for (const alarm of alarms) found.set(alarm.rule, (found.get(alarm.rule) || []).concat(alarm));
    return [...found.values()];
  }

  function card(alarms, runName) {
    const latest = alarms[alarms.length - 1];
    const evidence = G.isNumber(latest.value)
      ? G.el(
          "p",
          { class: "evidence" },
          "seen ",
          G.number(`alarm/${latest.rule}`, latest.value, { define: "alarm", step: latest.step }),
          G.isNumber(latest.threshold) ? [", allowed ", G.number(`alarm/${latest.rule}/threshold`, latest.threshold, { define: "alarm", step: latest.step })] : null,
        )
      : null;
    const steps = alarms.map((alarm) => alarm.step);
    const where = steps.length === 1 ? `step ${steps[0]}` : `steps ${G.listed(steps.slice(-6).map(String))}`;
    return G.el(
      "article",
      { class: "alarm", data: { rule: latest.rule } },
      G.el("h4", {}, "\u25b2 ", G.oneLine(latest.rule, 80), " ", G.el("span", { class: "soft" }, where, runName ? ` of ${runName}` : null)),
      evidence,
      G.el("p", {}, G.el("b", {}, "Cause "), G.longText(latest.cause || G.NONE, 400)),
      G.el("p", {}, G.el("b", {}, "Try "), G.longText(latest.advice || G.NONE, 400)),
      G.button(`look at step ${latest.step}`, () => G.state.set({ view: "trust", step: latest.step || 1 }), { class: "link" }),
    );
  }

  /* Fills the node with the alarms of all runs that are shown; without any it says so. */
  G.alarmCards = function (node, runs) {
    const several = runs.length > 1;
    const name = (run) => (several ? G.oneLine(run.overview.name, 40) : null);
    const key = JSON.stringify(runs.map((run) => [run.id, run.overview.alarms]));
    G.fillOnce(node, key, () => {
      const cards = runs.flatMap((run) => byRule(run.overview.alarms || []).map((alarms) => card(alarms, name(run))));
      return cards.length ? cards : G.el("p", { class: "calm" }, "\u2713 No alarm. A rule whose metrics are not recorded says nothing.");
    });
  };
})();
