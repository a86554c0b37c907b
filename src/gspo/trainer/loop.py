"""The loop, in the order in which things happen.

Take P judged groups, pack the scored responses, make K updates (the first also settles what
the later ones are compared with), publish the weights, record, evaluate, save. What runs ahead or in parallel hides
in the stream and the verifier, never here.
"""

from __future__ import annotations

from dataclasses import replace

from gspo.errors import DataError, NumericsError
from gspo.policy.packing import pack_rollouts
from gspo.stats import merge
from gspo.trainer.advantage import advantages_of, with_reference
from gspo.trainer.clock import Clock
from gspo.trainer.interrupt import StopRequest
from gspo.trainer.judge import StepJudge
from gspo.trainer.minibatches import minibatch_rows
from gspo.trainer.old_logp import StepMinibatches
from gspo.trainer.parts import Parts
from gspo.trainer.rows import StepUpdates, response_rows
from gspo.trainer.state import TrainState
from gspo.trainer.statistics import step_responses, step_stats

#: A skipped update is bad luck, three in a row are a broken run.
MAX_SKIPPED_IN_A_ROW = 3


def run_loop(parts: Parts, state: TrainState, stop: StopRequest) -> TrainState:
    """From `state` to the last step, or to the first request to stop; returns the state reached.

    Everything up to the returned state is recorded, and a checkpoint of it exists.
    """
    plan = parts.plan
    skipped_in_a_row = 0
    while state.step < plan.steps and not stop.requested:
        clock = Clock()
        step = state.step + 1

        judge = StepJudge(parts.verifier, clock, state.verdicts, plan.max_failed_share)
        try:
            with clock.part("rollout"):
                taken = parts.stream.take(state, judge, stop)
        except DataError:  # dynamic sampling found nothing to learn: what was learned stays
            parts.save(state)
            raise
        if taken is None:
            break
        groups = taken.groups

        advantage = advantages_of(groups, plan)
        packed = pack_rollouts(groups, advantage, temperature=plan.temperature)
        batch = packed.batch
        if batch.num_responses == 0:
            raise DataError(
                f"step {step} has no response to train on: {len(packed.dropped)} were left out, the first because: {packed.dropped[0].reason}"
            )
        minibatches = minibatch_rows(
            batch, plan.minibatches, plan.minibatch_by, seed=state.seed, step=step
        )

        if parts.reference is not None and plan.kl is not None:
            with clock.part("score"):
                batch = with_reference(batch, parts.policy, parts.reference, plan, plan.kl)
        # Minibatches after the first are off-policy: what they are compared with is settled between
        # the first one's backward and its optimizer step. The first is compared with itself.
        objective = parts.clip.objective
        parted = [batch.select(rows) for rows in minibatches]
        to_update = StepMinibatches(parted, parts.policy, objective, plan, clock)
        results = []
        with clock.part("update"):
            for minibatch, before_step in to_update.turns():
                result = parts.policy.update(minibatch, objective, before_step)
                results.append(result)
                skipped_in_a_row = skipped_in_a_row + 1 if result.skipped else 0
                if skipped_in_a_row == MAX_SKIPPED_IN_A_ROW:
                    raise NumericsError(
                        f"{skipped_in_a_row} updates in a row were skipped, the last at step {step}: {result.skipped}. Lower optimizer.lr, or look at the step's prompts; the last checkpoint is from before this step"
                    )

        with clock.part("publish"):
            parts.engine.load(parts.policy.weights(step))

        updates = StepUpdates.join(batch, minibatches, results, to_update.gate)
        responses = step_responses(batch, updates, objective)
        event = parts.clip.observe(step, responses)
        state = replace(
            state,
            step=step,
            version=step,
            cursor=state.cursor + len(taken.sampled),
            tokens_seen=state.tokens_seen + batch.num_tokens,
            prompts_seen=state.prompts_seen + len(taken.sampled),
            verdicts=judge.verdicts,
            clip=parts.clip.memory(),
            queries=taken.queries,
        )

        said = merge(result.stats for result in results)
        stats = step_stats(groups, batch, updates, responses, objective, said)
        rows = response_rows(groups, packed.kept, batch, updates)
        parts.record(step, {**stats, **taken.stats, **clock.stats(batch.num_tokens)}, rows, event)

        if plan.evaluate_every and step % plan.evaluate_every == 0 and step < plan.steps:
            parts.evaluate(step)
        if parts.save_due(step):
            parts.save(state)

    parts.save(state)
    return state
