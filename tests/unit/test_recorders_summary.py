"""The closing picture fits its width, reads without colour, and marks ranges where they lie."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from gspo.recorders.chart import MARGIN_CHARS, Band, LogRatioChart
from gspo.recorders.summary import Closing, SampleAnswer, Score, closing_picture
from gspo.stats import LOG_RATIO_EDGES

SAMPLE = SampleAnswer(
    prompt="48+13=",
    expected="61",
    before="8+3=11\n4+1=5\n51 [b]\x1b[31m",
    after="8+3=11\n4+1+1=6\n61\u202e",
    reward_before=0.0,
    reward_after=1.0,
)
COUNTS = [0] * (len(LOG_RATIO_EDGES) - 1)
CLOSING = Closing(
    before=Score(
        num_prompts=256, pass_at_1=0.371, interval=(0.34, 0.4), pass_at_k={8: 0.81}, greedy=0.996
    ),
    after=Score(
        num_prompts=256, pass_at_1=0.902, interval=(0.88, 0.92), pass_at_k={8: 0.95}, greedy=0.9921
    ),
    samples=[SAMPLE] * 4,
    log_s={"edges": LOG_RATIO_EDGES, "counts": [*COUNTS[:20], 30, 10, *COUNTS[22:50], 1, *[0] * 6]},
    band=(-0.003, 0.004),
    cut_share=[0.0, 0.08, None],
    run_path="runs/add4-gspo",
    next_command="gspo dashboard runs/add4-gspo",
)


def rendered(renderable: RenderableType, width: int = 80) -> list[str]:
    out = io.StringIO()
    Console(file=out, force_terminal=False, width=width).print(renderable)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_every_line_fits_and_no_control_character_is_left(width: int) -> None:
    lines = rendered(closing_picture(CLOSING), width)
    assert max(map(cell_len, lines)) <= width
    assert all(line.isprintable() for line in lines)


def test_the_table_worked_by_hand() -> None:
    lines = rendered(closing_picture(CLOSING))
    assert [line.split() for line in lines[5:8]] == [
        ["pass@1", "0.371", "[0.340,", "0.400]", "0.902", "[0.880,", "0.920]", "+0.531"],
        ["pass@8", "0.810", "0.950", "+0.140"],
        ["greedy", "0.996", "0.992", "-0.004"],
    ]
    assert "256 held-out prompts" in lines


def test_answers_stand_side_by_side_and_are_harmless() -> None:
    lines = rendered(closing_picture(CLOSING))
    assert sum("48+13=" in line for line in lines) == 3
    (first, *_) = [line for line in lines if "before: reward" in line]
    assert "after: reward 1" in first
    assert any("51 [b]␛[31m" in line and "61\\u202e" in line for line in lines)


def test_what_is_missing_is_left_out() -> None:
    empty = replace(CLOSING, before=None, after=None, samples=[], log_s=None, cut_share=[])
    lines = rendered(closing_picture(empty))
    assert [line for line in lines if line][1:] == [
        "run folder  runs/add4-gspo",
        "next",
        "gspo dashboard runs/add4-gspo",
    ]
    after_only = rendered(closing_picture(replace(CLOSING, before=None)))
    assert any(line.split()[:3] == ["pass@1", "-", "0.902"] for line in after_only)


def test_cut_shares_by_minibatch() -> None:
    lines = rendered(closing_picture(CLOSING))
    assert "1  0.0%  the ratio is 1 here, nothing to cut" in lines
    assert "2  8.0%  ████" in lines
    assert "3     -" in lines


def test_a_chart_worked_by_hand() -> None:
    edges = [-0.1, -0.01, -0.001, 0.001, 0.01, 0.1]
    chart = LogRatioChart(edges, [0, 4, 8, 1, 0], [Band("used", -0.005, 0.005)])
    lines = rendered(chart)
    assert lines[0] == "    62% │      ███"
    assert lines[4] == "        │   ██████"  # 4 of 8 is half the height
    assert lines[7] == "        │   █████████"
    assert lines[8].startswith("      0 └")
    # three characters a bin: -1e-2 between bins 0 and 1, 0 in the middle of bin 2
    assert lines[8] == "      0 └───┬───┬────┬──"
    assert lines[9] == "          -1e-2 0  1e-2"
    assert lines[10] == "   used     ├───────┤  -0.005 … +0.005"


def test_one_response_among_many_is_still_seen() -> None:
    lines = rendered(LogRatioChart([-1.0, -0.1, 0.1, 1.0], [1, 100_000, 0]))
    assert lines[7][MARGIN_CHARS] == "▁"


def test_narrow_charts_merge_bins_and_lose_no_response() -> None:
    counts = list(range(len(LOG_RATIO_EDGES) - 1))
    chart = LogRatioChart(LOG_RATIO_EDGES, counts)
    for room in (1, 2, 5, 20, 57, 80):
        edges, merged = chart._fitted(room)
        assert len(merged) <= room
        assert sum(merged) == sum(counts)
        assert len(edges) == len(merged) + 1
        assert edges == sorted(edges)


def test_bands_without_an_end_and_no_data() -> None:
    chart = LogRatioChart([-1.0, -0.1, 0.1, 1.0], [1, 2, 3], [Band("used", float("-inf"), 0.01)])
    assert rendered(chart)[-1] == "   used  ─────┤  -inf … +0.01"
    assert rendered(LogRatioChart([0.0, 1.0], [0])) == ["no responses were trained on"]
