"""Log-ratios of four tokens by hand, then the laws of shares."""

import pytest
import torch

from gspo.diagnostics.attribution import attribute, attribution_stats, explain_response
from gspo.diagnostics.clipping import UpdatedResponses
from gspo.errors import DataError
from gspo.segments import Segments
from gspo.stats import merge
from tests.docs.glossary import documented
from tests.recorder_rows import row


def attributed(*responses: list[float], top: int = 10):
    moved = torch.tensor([d for response in responses for d in response])
    return attribute(
        moved, torch.zeros_like(moved), Segments.from_lengths([len(r) for r in responses]), top=top
    )


def test_shares_by_hand():
    found = attributed([0.5, -0.25, 0.25, 0.0])
    assert found.size.tolist() == [1.0]
    assert found.total.tolist() == [0.5]
    assert found.top_share(1).tolist() == [0.5]
    assert found.top_share(2).tolist() == [0.75]
    assert found.top_share(3).tolist() == [1.0]
    assert found.cancelled_share.tolist() == [0.5]


def test_the_largest_tokens_keep_sign_and_place_and_the_earlier_of_equals_is_first():
    found = attributed([0.25, -0.5], [0.125, -0.25, 0.25], top=3)
    assert found.top_position.tolist() == [[1, 0, -1], [1, 2, 0]]
    assert found.top_value.tolist() == [[-0.5, 0.25, 0.0], [-0.25, 0.25, 0.125]]


@pytest.mark.parametrize(
    ("moved", "position", "value"),
    [
        ([0.5, -0.25, 0.25], [2, 1], [0.25, -0.25]),  # 0.5 cancels no more, and sums further from 0
        ([0.5, -0.25], [0, 1], [0.5, -0.25]),
        ([-4.0, 3.0, -3.5, 1.0, -1.0], [1, 2], [3.0, -3.5]),
        ([0.5, 0.25], [-1, -1], [0.0, 0.0]),
        ([0.0, -0.5], [-1, -1], [0.0, 0.0]),
    ],
)
def test_the_largest_cancelling_pair(moved, position, value):
    other = [1.0, -1.0]  # a neighbour lends no token
    found = attributed(other, moved)
    assert found.pair_position[1].tolist() == position
    assert found.pair_value[1].tolist() == value


def test_the_pair_is_the_best_of_all_pairs():
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        moved = torch.randint(-8, 9, (7,), generator=generator).tolist()
        pairs = [(p, -n) for p in moved if p > 0 for n in moved if n < 0]
        found = attributed([float(d) for d in moved])
        up, down = found.pair_value[0].tolist()
        if pairs:
            best = max(pairs, key=lambda pair: (min(pair), -abs(pair[0] - pair[1])))
            assert (min(up, -down), abs(up + down)) == (min(best), abs(best[0] - best[1]))
            at = found.pair_position[0].tolist()
            assert [moved[k] for k in at] == [up, down]
        else:
            assert found.pair_position[0].tolist() == [-1, -1]


def test_nothing_moved_and_nothing_there_have_no_share():
    found = attributed([0.0, 0.0], [], [1.0])
    assert found.top_share(1).isnan().tolist() == [True, True, False]
    assert found.cancelled_share.isnan().tolist() == [True, True, False]
    assert found.top_position[1].tolist() == [-1] * 10


def responses(num: int, **given) -> UpdatedResponses:
    fields = {
        "log_s": torch.zeros(num),
        "advantage": torch.ones(num),
        "lengths": torch.full((num,), 4),
        "minibatch": torch.full((num,), 2),
        "off_policy": torch.ones(num, dtype=torch.bool),
        "cut_low": torch.zeros(num, dtype=torch.int64),
        "cut_high": torch.zeros(num, dtype=torch.int64),
        "unit": "sequence",
    }
    return UpdatedResponses(**(fields | given))


def test_statistics_are_means_over_off_policy_responses_that_moved_and_have_a_signal():
    still, one, both = [0.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.5, -0.5, 0.0, 0.0]
    nan = [float("nan")] * 4
    found = attributed(one, both, one, one, still, nan)
    stats = attribution_stats(
        responses(
            6,
            advantage=torch.tensor([1.0, -1.0, 0.0, 1.0, 1.0, 1.0]),
            off_policy=torch.tensor([True, True, True, False, True, True]),
        ),
        found,
    )
    assert {name: stat.value() for name, stat in stats.items()} == {
        "attribution/top1_share": 0.75,
        "attribution/top3_share": 1.0,
        "attribution/top10_share": 1.0,
        "attribution/cancelled_share": 0.5,
    }
    assert all(documented(name) for name in stats)


def test_no_response_is_none():
    stats = attribution_stats(responses(1, advantage=torch.zeros(1)), attributed([1.0] * 4))
    assert {stat.value() for stat in stats.values()} == {None}


def test_parts_add_up_to_the_whole():
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(6, 4, generator=generator).tolist()
    whole = attribution_stats(responses(6), attributed(*rows))
    parts = merge(
        attribution_stats(responses(len(part)), attributed(*part)) for part in (rows[:2], rows[2:])
    )
    for name, stat in whole.items():
        assert parts[name].value() == pytest.approx(stat.value(), rel=1e-12)


def letters(ids) -> str:
    return "".join(chr(ord("a") + k) for k in ids)


ROW = {
    "tokens": [0, 1, 2, 3],
    "old_logp": [-1.0, -1.0, -1.0, -1.0],
    "logp": [-1.0, -0.5, -1.25, -0.75],
    "skipped": None,
}


def test_a_row_is_explained_with_the_text_around_its_tokens():
    explained = explain_response(ROW, letters, top=2, context=1)
    assert explained.log_s == 0.125
    assert explained.cancelled_share == 0.5
    assert [str(token) for token in explained.top] == ["a[b]c", "b[c]d"]
    assert [token.log_ratio for token in explained.top] == [0.5, -0.25]
    assert [token.share for token in explained.top] == [0.5, 0.25]
    assert [str(token) for token in explained.pair] == ["c[d]", "b[c]d"]


def test_a_response_that_did_not_move_is_explained_without_a_share():
    explained = explain_response(ROW | {"logp": ROW["old_logp"]}, letters)
    assert (explained.log_s, explained.cancelled_share, explained.pair) == (0.0, 0.0, None)
    assert [token.position for token in explained.top] == [0, 1, 2, 3]
    assert {token.share for token in explained.top} == {0.0}


def test_a_row_without_log_probs_says_why_there_is_nothing_to_explain():
    skipped = row(logp=None, log_s=None, skipped="update skipped: loss is nan")
    given = {name: getattr(skipped, name) for name in ("tokens", "old_logp", "logp", "skipped")}
    with pytest.raises(DataError, match=r"update skipped: loss is nan.*logp is not null"):
        explain_response(given, letters)
