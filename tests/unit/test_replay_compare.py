"""Two steps by hand, then the laws that tie a replay to the record and to the diagnostics."""

import math

import pyarrow as pa
import pytest
import torch

from gspo.diagnostics.clipping import UpdatedResponses, clip_stats
from gspo.diagnostics.weights import response_weights, surrogate_of, weight_stats
from gspo.errors import DataError
from gspo.replay.candidates import Candidate, requested
from gspo.replay.compare import replay
from gspo.replay.own import own_objective
from gspo.replay.record import COLUMNS, read_step
from gspo.replay.totals import outcome
from gspo.segments import Segments
from gspo.settings import (
    DAPO,
    GRPO,
    GSPO,
    OBJECTIVES,
    ClipRange,
    DrGRPO,
    GSPOToken,
    LengthFairClip,
    LogClip,
)
from gspo.stats import merge
from tests.recorder_rows import row
from tests.replay_run import simulated, write_run

NARROW = "{name: gspo, clip: {low: 0.01, high: 0.01}}"
GSPO_NARROW = GSPO(clip=ClipRange(0.01, 0.01))


def whole(run, candidates=(), steps=None):
    return replay(run, own_objective(run), candidates, steps=steps or run.steps())


def candidate(objective, aggregation=None) -> Candidate:
    return Candidate(label="x", objective=objective, max_tokens=64, aggregation=aggregation)


def response(moved: list[float], advantage: float, minibatch: int = 2):
    """A response whose token log-ratios are these; old log-probs are -1, so all is exact."""
    num = len(moved)
    return row(
        old_logp=[-1.0] * num,
        logp=[d - 1 for d in moved],
        engine_logp=[-1.0] * num,
        tokens=[0] * num,
        length=num,
        advantage=advantage,
        minibatch=minibatch,
        cut_low=0,
        cut_high=0,
        loss=None,
    )


HAND = [
    response([0.0, 0.0], 1.0, minibatch=1),
    response([0.25, 0.25], 1.0),  # log s = 0.25
    response([-0.25] * 4, 1.0),
    response([0.0] * 4, -2.0),
    response([0.5], 0.0),
]


def test_gspo_by_hand(tmp_path):
    run = write_run(tmp_path / "run", "{name: gspo, clip: {low: 0.1, high: 0.1}}", [HAND])
    own = whole(run).own
    up, down = math.exp(0.25), math.exp(-0.25)
    assert own.overall.num_responses == 3
    assert (own.overall.cut_high, own.overall.cut_low) == (1 / 3, 0.0)
    assert own.overall.kept_weight == pytest.approx((down + 2) / (up + down + 2), rel=1e-6)
    assert own.overall.ess == pytest.approx((down + 2) ** 2 / (3 * (down**2 + 4)), rel=1e-6)
    # Minibatch 1: -1 / 1. Minibatch 2: the cut one stands at the edge; four responses are in D.
    assert own.loss == pytest.approx((-1 + (-1.1 - down + 2) / 4) / 2, rel=1e-6)
    assert [(b.length, b.num_responses, b.cut_share) for b in own.buckets] == [
        ("2-3", 1, 1.0),
        ("4-7", 2, 0.0),
    ]


def test_grpo_by_hand_counts_tokens_within_a_response(tmp_path):
    rows = [response([0.25, 0.0], 1.0), response([-0.5, 0.0, 0.0, 0.0], -1.0)]
    run = write_run(tmp_path / "run", "{name: grpo, clip: {low: 0.2, high: 0.2}}", [rows])
    own = whole(run).own
    assert (own.overall.cut_high, own.overall.cut_low) == (0.25, 0.125)
    assert own.overall.cut_share == 0.375


def test_a_response_without_log_probs_is_left_out_and_stays_in_the_denominator(tmp_path):
    gone = row(logp=None, log_s=None, minibatch=2, length=2, loss=None, skipped="dead")
    never = row(logp=None, old_logp=None, log_s=None, minibatch=None, loss=None, skipped="failed")
    rows = [response([0.0, 0.0], 1.0), gone, never]
    result = whole(write_run(tmp_path / "run", NARROW, [rows]))
    assert (result.num_responses, result.num_left_out) == (1, 2)
    assert result.own.overall.num_responses == 1
    assert result.own.loss == -0.5


def test_a_minibatch_that_did_not_run_is_no_optimizer_step(tmp_path):
    skipped = row(logp=None, old_logp=None, log_s=None, minibatch=2, loss=None, skipped="nan")
    run = write_run(tmp_path / "run", NARROW, [[response([0.0], 1.0, minibatch=1), skipped]])
    assert whole(run).own.loss == -1.0


def test_steps_are_pooled_and_can_be_chosen(tmp_path):
    run = write_run(tmp_path / "run", NARROW, [[response([0.25], 1.0)], [response([0.0], 1.0)]])
    assert whole(run).own.overall.cut_share == 0.5
    assert whole(run, steps=[2]).own.overall.cut_share == 0.0


def test_a_measured_range_is_replayed_step_by_step(tmp_path):
    steps = [[response([0.05], 1.0)]] * 3
    run = write_run(tmp_path / "run", "gspo", steps, ranges=[(0.1, 0.1), None, (0.01, 0.01)])
    result = whole(run)
    assert result.own.overall.cut_share == 0.5
    assert (result.own.num_steps, result.num_steps) == (2, 3)


def test_damaged_files_are_named_and_left_out(tmp_path):
    run = write_run(tmp_path / "run", NARROW, [HAND] * 5)
    files = [run.path / "steps" / f"{step:06d}.parquet" for step in range(1, 6)]
    files[0].write_bytes(files[0].read_bytes()[:100])
    data = bytearray(files[1].read_bytes())
    data[len(data) // 3] ^= 0xFF
    files[1].write_bytes(bytes(data))
    short = write_run(tmp_path / "short", NARROW, [[row(logp=[-1.0], minibatch=2)]])
    files[2].write_bytes((short.path / "steps" / "000001.parquet").read_bytes())
    nan = write_run(tmp_path / "nan", NARROW, [[row(logp=[math.nan, -1.0], minibatch=2)]])
    files[3].write_bytes((nan.path / "steps" / "000001.parquet").read_bytes())
    result = whole(run)
    assert (result.num_steps, result.steps) == (1, (5, 5))
    assert len(result.damaged) == 4
    for text, expected in zip(
        sorted(result.damaged), ("000001", "000002", "step 3", "step 4"), strict=True
    ):
        assert expected in text
    with pytest.raises(DataError, match=r"steps 2 to 5.*step 3: a response has 1 values"):
        whole(run, steps=[3])


def test_a_column_of_another_type_is_damage(tmp_path):
    run = write_run(tmp_path / "run", NARROW, [HAND])
    table = run.step(1, COLUMNS)
    index = table.schema.get_field_index("advantage")
    other = table.set_column(index, "advantage", table["advantage"].cast("float32"))
    assert read_step(1, other) == "column advantage is float; wanted double"


def settings_of(name: str):
    """Each objective with a range that the simulated noise crosses."""
    given = {"max_tokens": 64} if name == "dr_grpo" else {}
    if name == "gmpo":
        given["clip"] = LogClip(0.03, 0.03)
    elif name != "sapo":
        given["clip"] = ClipRange(0.01, 0.01)
    return OBJECTIVES[name](**given)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three steps of a GSPO run."""
    path = tmp_path_factory.mktemp("runs") / "run"
    steps = [simulated(GSPO_NARROW, seed=s, num_responses=60, minibatches=3) for s in range(3)]
    return write_run(path, NARROW, steps)


def test_the_record_is_reproduced(recorded):
    result = whole(recorded)
    assert result.reproduction.cuts == 0
    assert result.reproduction.loss < 1e-6
    assert result.reproduction.num_responses == 180
    assert result.own.overall.cut_share > 0.1


def test_another_objective_does_not_reproduce_it(recorded, tmp_path):
    steps = [simulated(GSPO_NARROW, num_responses=60)]
    wrong = write_run(tmp_path / "wrong", "{name: gspo, clip: {low: 0.02, high: 0.01}}", steps)
    assert whole(wrong).reproduction.cuts > 0
    assert whole(wrong).reproduction.loss > 1e-3


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_shares_are_those_of_the_diagnostics(recorded, name):
    objective = settings_of(name)
    (row_,) = whole(recorded, [candidate(objective)]).rows
    stats = merge(diagnosed(recorded, step, objective) for step in recorded.steps())
    names = {"cut_share": "clip/cut_share", "cut_low": "clip/cut_low", "cut_high": "clip/cut_high"}
    names |= {"kept_weight": "weight/kept_share", "ess": "weight/ess_share"}
    for ours, theirs in names.items():
        got = getattr(row_.overall, ours)
        assert got == pytest.approx(stats[theirs].value(), rel=1e-6), theirs
        for bucket in row_.buckets:
            theirs_there = stats[f"{theirs}/len_{bucket.length}"].value()
            assert getattr(bucket, ours) == pytest.approx(theirs_there, rel=1e-6)


def diagnosed(run, step, objective):
    rows = run.step(step).to_pylist()
    logp, old_logp = (
        torch.tensor([x for r in rows for x in r[name]]) for name in ("logp", "old_logp")
    )
    advantage = torch.tensor([r["advantage"] for r in rows])
    minibatch = torch.tensor([r["minibatch"] for r in rows])
    segments = Segments.from_lengths([r["length"] for r in rows])
    done = surrogate_of(objective, logp, old_logp, advantage, segments)
    cut_low, cut_high = (
        cut.long() if objective.unit == "sequence" else segments.sum(cut.float()).long()
        for cut in (done.cut_low, done.cut_high)
    )
    responses = UpdatedResponses(
        log_s=segments.mean(logp - old_logp),
        advantage=advantage,
        lengths=segments.lengths,
        minibatch=minibatch,
        off_policy=minibatch > 1,
        cut_low=cut_low,
        cut_high=cut_high,
        unit=objective.unit,
    )
    weights = response_weights(objective, done, advantage)
    return clip_stats(responses) | weight_stats(responses, weights)


@pytest.mark.parametrize("objective", [GSPO_NARROW, GSPOToken(clip=ClipRange(0.01, 0.01))])
def test_one_token_a_response_says_the_same_as_all_of_them(recorded, objective):
    step = read_step(1, recorded.step(1, COLUMNS))
    done = outcome(candidate(objective), objective, step.responses)
    everything = step.responses
    full = surrogate_of(
        objective,
        everything.logp,
        everything.old_logp,
        everything.advantage,
        everything.segments,
    )
    weights = response_weights(objective, full, everything.advantage)
    torch.testing.assert_close(done.loss, full.loss, rtol=1e-6, atol=0)
    assert torch.equal(done.cut_high.bool(), full.cut_high)
    assert torch.equal(done.cut_low.bool(), full.cut_low)
    torch.testing.assert_close(done.kept, weights.kept, rtol=1e-6, atol=0)
    torch.testing.assert_close(done.unclipped, weights.unclipped, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("objective", "aggregation", "same"),
    [
        (GRPO(clip=ClipRange(0.01, 0.02)), "tokens", DAPO(clip=ClipRange(0.01, 0.02))),
        (DAPO(clip=ClipRange(0.01, 0.02)), "responses", GRPO(clip=ClipRange(0.01, 0.02))),
        (GRPO(), "constant", DrGRPO(max_tokens=64)),
        (DAPO(clip=GRPO().clip), "constant", DrGRPO(max_tokens=64)),
    ],
)
def test_grpo_over_tokens_is_dapo(recorded, objective, aggregation, same):
    ours, theirs = whole(recorded, [candidate(objective, aggregation), candidate(same)]).rows
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
    for name in ("cut_share", "kept_weight", "ess"):
        got = getattr(ours.overall, name)
        assert got == pytest.approx(getattr(theirs.overall, name), rel=1e-5), name


def test_dividing_by_tokens_leaves_fewer_effective_responses(recorded):
    by_response, by_token = whole(
        recorded, [candidate(GSPO_NARROW), candidate(GSPO_NARROW, "tokens")]
    ).rows
    assert by_token.overall.ess < by_response.overall.ess
    assert by_token.overall.cut_share == by_response.overall.cut_share


def test_a_wider_range_cuts_less_and_keeps_more(recorded):
    own = own_objective(recorded)
    clips = ["0.001,0.001", "0.01,0.01", "0.1,0.1"]
    rows = whole(recorded, requested(own, [], clips, [])).rows
    cuts = [r.overall.cut_share for r in rows]
    kept = [r.overall.kept_weight for r in rows]
    assert cuts == sorted(cuts, reverse=True)
    assert kept == sorted(kept)
    assert len(set(cuts)) == 3


def test_a_length_fair_range_closes_the_gap_between_lengths(tmp_path):
    steps = [simulated(GSPO_NARROW, num_responses=4000, longest=64)]
    run = write_run(tmp_path / "run", NARROW, steps)
    fixed, fair = whole(
        run, [candidate(GSPO_NARROW), candidate(GSPO(clip=LengthFairClip(0.05, 0.05)))]
    ).rows
    assert fair.length_gap < fixed.length_gap / 2


def test_portions_do_not_matter(recorded, monkeypatch):
    wanted = whole(recorded, [candidate(DAPO(clip=ClipRange(0.01, 0.01)))]).rows[0]
    monkeypatch.setattr("gspo.replay.compare.TOKENS_AT_ONCE", 1)
    got = whole(recorded, [candidate(DAPO(clip=ClipRange(0.01, 0.01)))]).rows[0]
    assert got.loss == pytest.approx(wanted.loss, rel=1e-9)
    assert got.overall.ess == pytest.approx(wanted.overall.ess, rel=1e-9)
    assert got.num_steps == wanted.num_steps == 3


def test_a_hole_in_a_column_is_damage(tmp_path):
    run = write_run(tmp_path / "run", NARROW, [HAND])
    table = run.step(1, COLUMNS)
    index = table.schema.get_field_index("length")
    lengths = table["length"].to_pylist()
    holes = pa.array([None, *lengths[1:]], type=table.schema.field("length").type)
    found = read_step(1, table.set_column(index, table.schema.field("length"), holes))
    assert found == "column length holds 1 nulls; wanted a number for each response"
