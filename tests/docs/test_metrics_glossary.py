"""The glossary is complete: every statistic has an entry, every entry says what it must."""

import re
from collections import Counter

import torch

from gspo.diagnostics.clipping import UpdatedResponses, clip_stats
from gspo.diagnostics.histogram import log_s_stats
from gspo.diagnostics.rollouts import engine_gap_stats, rollout_stats
from gspo.segments import Segments
from tests.docs.glossary import FIELDS, PAGE, documented, matcher, parse

ENTRIES = parse(PAGE.read_text(encoding="utf-8"))


def produced() -> set[str]:
    """Names of every diagnostic on a step with two minibatches and three lengths."""
    responses = UpdatedResponses(
        log_s=torch.tensor([0.0, 0.1, -0.1, 0.2]),
        advantage=torch.tensor([1.0, -1.0, 1.0, -1.0]),
        lengths=torch.tensor([1, 3, 20, 30]),
        minibatch=torch.tensor([1, 2, 2, 2]),
        off_policy=torch.tensor([False, True, True, True]),
        cut_low=torch.tensor([0, 0, 0, 0]),
        cut_high=torch.tensor([0, 0, 0, 0]),
        unit="sequence",
    )
    segments = Segments.from_lengths([2, 1])
    rollouts = rollout_stats(
        torch.tensor([1.0, 0.0]),
        torch.tensor([0, 0]),
        torch.tensor([2, 1]),
        torch.tensor([False, True]),
    )
    gap = engine_gap_stats(torch.zeros(3), torch.zeros(3), segments)
    return set(clip_stats(responses, (-0.2, 0.2)) | log_s_stats(responses) | rollouts | gap)


def test_every_statistic_of_the_diagnostics_is_defined():
    names = produced()
    assert {"clip/cut_share/len_16-31", "log_s/std_mb2", "gap/missing"} <= names
    assert sorted(name for name in names if not documented(name)) == []


def test_every_entry_of_a_diagnostic_is_produced():
    recorded_elsewhere = {
        "clip/low",
        "clip/high",
        "reward/strict_mean",
        "reward/strict_gap",
        "reward/part/{part}",
        "gap/kept_mass",
        "gap/kept_mass_min",
    }
    families = ("clip/", "log_s/", "reward/", "groups/", "length/", "gap/")
    defined = {n for e in ENTRIES for n in e.names if n.startswith(families)} - recorded_elsewhere
    names = produced()
    missing = {d for d in defined if not any(matcher(d).fullmatch(name) for name in names)}
    assert missing == set()


def test_every_entry_has_every_field_and_no_other():
    assert len(ENTRIES) > 40
    for entry in ENTRIES:
        assert entry.names
        assert tuple(entry.fields) == FIELDS, entry.names


def test_no_metric_is_defined_twice():
    counts = Counter(name for entry in ENTRIES for name in entry.names)
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_metric_that_the_page_speaks_of_is_defined():
    mentioned = set(re.findall(r"`([a-z_]+/[a-z0-9_@-]+)`", PAGE.read_text(encoding="utf-8")))
    assert sorted(name for name in mentioned if not documented(name)) == []


def test_a_family_takes_its_members_only():
    assert documented("clip/cut_share_mb2")
    assert documented("clip/cut_share/len_1")
    assert documented("eval/pass@8")
    for name in ("clip/cut_share_mb0", "clip/cut_share/len_short", "clip/cut_shares", "cut_share"):
        assert not documented(name)


def test_an_entry_ends_at_the_next_heading():
    page = "intro\n### `a/b`, `a/c{k}`\n- formula: x / y\n- unit:\n## Next\n- good: 1\n### `d/e`\n"
    first, second = parse(page)
    assert first.names == ("a/b", "a/c{k}")
    assert first.fields == {"formula": "x / y"}
    assert (second.names, second.fields) == (("d/e",), {})
