/* Puts the page together: what was chosen, the data it needs, the view that shows it. */
(function () {
  "use strict";
  const G = window.G;
  let pulse = null; // the newest answer
  let current = null; // the context that is shown
  let asked = 0;
  let after = null; // to be done when the next view is shown
  const mounted = new Set();

  G.currentStep = () => (current ? current.step : null);

  const section = (key) => document.querySelector(`section[data-view="${key}"]`);

  const ids = () => G.state.runs().filter((id) => G.runs.find(id));

  /* Where the URL names no run that exists: the newest that has something to show. */
  function choose() {
    const { runs } = G.runs.answer();
    if (ids().length || !runs.length) return;
    const worth = runs.find((run) => run.status !== "broken" && run.status !== "empty") || runs[0];
    G.state.set({ runs: worth.id });
  }

  const versionOf = (id) => (pulse && pulse.runs[id] ? pulse.runs[id].version : "unknown");

  async function load(view, chosen) {
    if (!pulse || chosen.some((id) => !pulse.runs[id])) pulse = await G.source.pulse(chosen);
    const answers = await Promise.allSettled(
      chosen.map(async (id) => {
        const version = versionOf(id);
        const lastStep = pulse.runs[id] ? pulse.runs[id].step : Infinity; // a report does not go on
        const [overview, table] = await Promise.all([
          G.store.overview(id, version),
          view.names.length ? G.store.table(id, view.key, view.names, version, lastStep) : { step: [], time: [], columns: {} },
        ]);
        return { id, version, slot: G.runs.slot(id), overview, table };
      }),
    );
    const gone = answers.find((one) => one.status === "rejected" && one.reason instanceof G.Gone);
    if (gone) throw gone.reason;
    const runs = answers.filter((one) => one.status === "fulfilled").map((one) => one.value);
    return { runs, problems: answers.map((one, at) => (one.status === "rejected" ? { id: chosen[at], reason: one.reason.message } : null)).filter(Boolean) };
  }

  function context(view, runs) {
    const first = runs[0] || null;
    if (!first) return { view, runs, first: null, step: null, stepList: [], following: true };
    const recorded = first.table.step.filter((step) => step > 0);
    const openable = first.overview.steps || [];
    const stepList = view.usesSteps === "responses" && openable.length ? openable : recorded;
    const newest = stepList.length ? stepList[stepList.length - 1] : null;
    const step = G.state.step();
    return { view, runs, first, step: step ?? newest, stepList, following: step === null };
  }

  /* Words where a view has nothing to draw: no runs, a broken or an empty one. */
  function explanation(ctx, problems) {
    const answer = G.runs.answer();
    if (!answer.runs.length) return ["No runs yet", `There is no run folder in ${G.oneLine(answer.folder, 300)}. Start one with 'gspo train', or give another folder to 'gspo dashboard'. This page shows it as soon as it is there.`];
    if (!ctx.first) {
      const one = problems[0] || { id: G.state.runs()[0], reason: "" };
      const listed = G.runs.find(one.id);
      return [`${listed ? G.oneLine(listed.name, 80) : "This run"} cannot be read`, (listed && listed.problem) || one.reason || "Its folder has no readable run.json or metrics.jsonl."];
    }
    const { overview } = ctx.first;
    if (overview.status === "broken") return [`${G.oneLine(overview.name, 80)} cannot be read`, overview.problem || "Its files are damaged."];
    if (ctx.view.key === "recipe") return null;
    const evaluated = ctx.view.key === "working" && overview.headline.pass_at_1;
    if (overview.step > 0 || evaluated) return null;
    return ["No step is recorded yet", overview.problem || "The first step of this run is not finished. This page shows it within two seconds of its record."];
  }

  function explain(words) {
    const node = document.getElementById("explain");
    node.hidden = !words;
    if (words) G.fillOnce(node, words.join("\n"), () => [G.el("h2", {}, words[0]), G.el("p", {}, G.longText(G.sentence(words[1]), 1000))]);
  }

  function problemNote(problems) {
    if (problems.length) G.live.note(`${G.plural(problems.length, "run")} could not be read: ${G.oneLine(problems[0].reason, 200)}`);
    else G.live.note(null);
  }

  function show(view, ctx, problems) {
    current = ctx;
    for (const one of G.viewList) section(one.key).hidden = one !== view;
    G.header.render(ctx);
    G.header.views(G.viewList, view.key);
    G.stepper.render(view, ctx);
    G.runs.legend(ctx.runs);
    const words = explanation(ctx, problems);
    explain(words);
    const node = section(view.key);
    if (!mounted.has(view.key)) {
      G.viewHead(node, view);
      view.mount(node);
      mounted.add(view.key);
    }
    node.classList.toggle("empty", words !== null);
    if (!words) view.update(ctx);
    problemNote(ctx.first ? problems : []);
    if (after) after();
    after = null;
    document.body.dataset.step = ctx.first ? String(ctx.first.overview.step) : "";
  }

  /* Loads what the URL asks for and shows it. Of several calls only the newest is shown. */
  async function refresh() {
    const mine = ++asked;
    G.runs.assign(ids());
    G.runs.render();
    const view = G.currentView();
    const moved = !current || current.view !== view;
    if (moved) {
      G.header.views(G.viewList, view.key);
      document.body.dataset.view = view.key;
    }
    let loaded;
    try {
      loaded = await load(view, ids());
    } catch (error) {
      return G.live.failed(error);
    }
    if (mine !== asked) return;
    show(view, context(view, loaded.runs), loaded.problems);
    if (moved && mine > 1) window.scrollTo(0, 0);
    await G.whenDrawn();
    document.body.dataset.ready = "1";
  }

  G.app = { refresh, choose, ids, setPulse: (answer) => { pulse = answer; }, afterShow: (act) => { after = act; } };

  G.theme.mount(() => {
    G.runs.render();
    refresh().then(G.redraw);
  });
  G.tip.mount();
  G.keys.mount();
  G.state.listen(() => {
    if (!G.runs.answer()) return;
    choose();
    refresh();
  });
  G.live.start();
})();
