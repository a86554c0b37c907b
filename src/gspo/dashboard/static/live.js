/* Follows the runs: a pulse each second says what changed, and only that is asked for. */
(function () {
  "use strict";
  const G = window.G;
  const PULSE_MS = 1000;
  const RETRY_MS = 2000; // after a server that does not answer
  let listToken = null;
  let versions = "";
  let down = false;

  function banner(text, retry) {
    const node = document.getElementById("banner");
    node.hidden = !text;
    G.fillOnce(node, text || "", () => (text ? [text, " ", retry ? G.button("Try now", () => beat()) : null] : null));
  }

  function failed(error) {
    down = true;
    banner(error instanceof G.Gone ? `${G.sentence(error.message)} What is shown is the last that was read; the page tries again every ${RETRY_MS / 1000} seconds.` : G.sentence(error.message), true);
  }

  function note(text) {
    if (!down) banner(text, false);
  }

  async function beat() {
    const answer = await G.source.pulse(G.app.ids());
    if (down) {
      down = false;
      banner(null);
    }
    G.app.setPulse(answer);
    const now = JSON.stringify(answer.runs);
    if (answer.list !== listToken) {
      if (listToken !== null) G.runs.render(await G.source.runs());
      listToken = answer.list;
      G.app.choose();
    }
    if (now !== versions) {
      versions = now;
      await G.app.refresh();
    }
  }

  async function follow() {
    let wait = PULSE_MS;
    if (!document.hidden) {
      try {
        await beat();
      } catch (error) {
        failed(error);
        wait = RETRY_MS;
      }
    }
    setTimeout(follow, wait);
  }

  async function start() {
    try {
      const [, answer] = await Promise.all([G.definitions.load(), G.source.runs()]);
      G.runs.render(answer);
      G.app.choose();
    } catch (error) {
      failed(error);
      setTimeout(start, RETRY_MS);
      return;
    }
    if (down) {
      down = false;
      banner(null);
    }
    if (G.source.report) {
      await G.app.refresh();
      return;
    }
    document.addEventListener("visibilitychange", () => !document.hidden && beat().catch(failed));
    follow();
  }

  G.live = { start, failed, note };
})();
