/* What a name means: the glossary's entry for metrics, a sentence for the columns of a response and
   for the numbers that the page itself works out. */
(function () {
  "use strict";
  const G = window.G;
  let entries = [];

  const OWN = {
    row: "Number of the response in the step's file, from 0.",
    group: "Number of the prompt within the step; its responses form the group.",
    sample: "Number of the response within its group, from 0.",
    source: "Data set or task that the prompt came from.",
    prompt: "The prompt, as text.",
    text: "The response, as text. Control characters, bidi marks and escapes are shown, not obeyed.",
    reward: "Reward of this response; none where the verifier failed.",
    advantage: "Advantage within the group: above 0 the response is made likelier, below 0 less likely, 0 has no gradient.",
    length: "Trained tokens of the response.",
    log_s: "Mean over the response's tokens of logp \u2212 old_logp, nats: the logarithm of GSPO's ratio.",
    minibatch: "Update of the step that used the response, from 1. In the first one the ratio is 1.",
    cut: "Units whose gradient the clip made zero. low: ratio below the band and A < 0; high: above and A > 0.",
    finish: "stop: the end token came. length: cut at the limit. failed: no response.",
    failure: "Why there is no reward: what the verifier said.",
    parts: "Parts of the reward, as the verifier reports them.",
    skipped: "Why no update ran the response: it has no gradient, so nothing is lost.",
    step: "Steps recorded so far, and how many the recipe asks for.",
    status: "running: somebody writes the run. finished: it reached its end. interrupted: it did not, and nobody writes it.",
    time_left: "Steps that are left, at the pace of the latest steps.",
    elapsed: "Time from the start to the newest record.",
    fitted_exponent: "a in spread ~ L^\u2212a: a line through the logarithms of the buckets' standard deviations, weighted by their counts. 1/2: independent token noise. 0: a drift that all tokens share.",
    what_if: "Responses with A \u2260 0 of minibatch 2 and later: cut if log s is above the band and A > 0, or below it and A < 0. log s is as recorded: under another range the updates, and so log s, would have been others.",
    token_log_ratio: "logp \u2212 old_logp of one token, nats: how far the updates moved it.",
    token_gap: "old_logp \u2212 engine_logp of one token, nats: what the engine that sampled computed differently.",
    token_surprisal: "\u2212old_logp of one token, nats: how unlikely it was when sampled. Its mean estimates the entropy.",
    token_share: "Sum of |log-ratio| of this token over the sum over all tokens of the step; responses with A \u2260 0 of minibatch 2 and later.",
    pair: "Two tokens whose log-ratios have opposite signs: the smaller of the two sizes is lost in log s.",
    group_pass_rate: "Scored responses of the group with reward > 0.5 / scored responses of the group.",
    verdict: "First against last steps: a change is named only if it exceeds 3 standard errors (responses of a group are alike, so n count as n / 4), and for pass@1 only if the two 95 % intervals do not overlap.",
    alarm: "A rule that held at this step. It tells a person to look and changes nothing.",
    clip_event: "A change of the clip range by clip: auto, with its evidence.",
    difference: "Settings of the recipe that are not the same in the other run.",
    time_share: "Time of that part of the step / time of the step.",
    num_prompts: "Held-out prompts that the evaluation asked.",
  };

  async function load() {
    const answer = await G.source.definitions();
    entries = answer.metrics.map((entry) => ({ ...entry, test: new RegExp(`^(?:${entry.pattern})$`) }));
  }

  function find(name) {
    return entries.find((entry) => entry.names.includes(name)) || entries.find((entry) => entry.test.test(name)) || null;
  }

  /* The glossary writes names in backticks. */
  const coded = (text) => text.split("`").map((part, at) => (at % 2 ? G.el("code", {}, part) : part));

  function line(label, text) {
    return text ? G.el("p", {}, G.el("b", {}, label + " "), coded(text)) : null;
  }

  /* The parts of a tooltip for some names, or a note that none is known. */
  function explain(names) {
    const found = names.map((name) => {
      if (OWN[name]) return [G.el("p", {}, OWN[name])];
      const entry = find(name);
      if (!entry) return [G.el("p", {}, G.el("code", {}, name), " has no entry in the glossary.")];
      return [
        G.el("h4", {}, entry.names.join(", ")),
        line("Formula", entry.formula),
        line("Unit", entry.unit),
        line("Weighting", entry.weighting),
        line("Good", entry.good),
        line("Pitfalls", entry.pitfalls),
      ];
    });
    const seen = new Set();
    return found.filter((parts) => {
      const key = parts.filter(Boolean).map((part) => part.textContent).join();
      return !seen.has(key) && seen.add(key);
    });
  }

  G.definitions = { load, find, explain, own: OWN };
})();
