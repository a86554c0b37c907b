"""`gspo calibrate` and `fit_clip_range`: on a run folder of simulated rows, and on rows in memory."""

import json
import math

import pyarrow as pa
import pytest
import torch
from typer.testing import CliRunner

import gspo
from gspo.calibrate.fit import fit_samples
from gspo.calibrate.report import as_json, recipe_lines
from gspo.calibrate.samples import samples_of_records, samples_of_run
from gspo.cli.main import build_app
from gspo.errors import DataError, RecipeError
from gspo.recorders.reader import open_run
from gspo.recorders.run_folder import RunFolder
from gspo.settings import LengthFairClip
from gspo.stats import Mean
from tests.recorder_rows import row

NUM_STEPS, NUM_GROUPS, GROUP = 8, 16, 8
KEYS = {
    *("low", "high", "interval", "length_fair", "recommend", "exponent", "cut_share"),
    *("num_responses", "buckets"),
}


def simulated_step(step, *, longest=1024, drift=0.0, exponent=0.5):
    """Rows of one step: two minibatches, a group of equal rewards, log s of spread 0.02 L^-a."""
    generator = torch.Generator().manual_seed(step)
    rows = []
    for group in range(NUM_GROUPS):
        for sample in range(GROUP):
            u, z = torch.rand(1, generator=generator), torch.randn(1, generator=generator)
            length = int(16 * (longest / 16) ** float(u))
            sign = 1 if sample % 2 else -1
            log_s = drift * sign + 0.02 * length**-exponent * float(z)
            rows.append(
                row(
                    group=group,
                    sample=sample,
                    minibatch=1 + group % 4,
                    advantage=0.0 if group == 1 else 0.5 * sign,
                    length=length,
                    log_s=None if group == 5 and sample == 0 else log_s,
                    cut_low=0,
                    cut_high=int(sample == 1),
                )
            )
    return rows


def write_run(path, steps=NUM_STEPS, **given):
    folder = RunFolder.create(path, info={}, recipe="objective: {name: gspo, clip: auto}\n")
    for step in range(1, steps + 1):
        stats = {"clip/low": Mean(1e-3, 1), "clip/high": Mean(2e-3, 1)}
        folder.step(step, stats, simulated_step(step, **given))
    folder.close()
    return path


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "simulated", steps=NUM_STEPS)


@pytest.fixture(scope="module")
def fit(run_path):
    return gspo.fit_clip_range(run_path)


def records(size=600, **given):
    """600 responses, alternating in sign: log s 0 .. 0.01 and 0 .. -0.02."""
    ramp = torch.linspace(0, 0.01, size // 2).double()
    log_s = torch.stack([ramp, -2 * ramp], dim=1).flatten()
    sign = torch.tensor([1.0, -1.0]).repeat(size // 2)
    return {"log_s": log_s, "advantage": sign, "length": torch.full((size,), 64), **given}


def command(*arguments):
    return CliRunner().invoke(build_app(), ["calibrate", *map(str, arguments)])


def test_bounds_are_quantiles_by_sign_as_distances_from_ratio_1():
    fit = gspo.fit_clip_range(records())
    assert fit.high == pytest.approx(math.expm1(0.0085))
    assert fit.low == pytest.approx(-math.expm1(-0.017))
    assert fit.interval["high"][0] < fit.high < fit.interval["high"][1]
    assert fit.interval["low"][0] < fit.low < fit.interval["low"][1]
    # 64 tokens: the square root is 8.
    assert fit.length_fair.high == pytest.approx(8 * 0.0085)
    assert fit.length_fair.low == pytest.approx(8 * 0.017)
    assert gspo.fit_clip_range(records(), cut_share=0.3).high == pytest.approx(math.expm1(0.007))


def test_records_may_be_rows_or_a_table():
    table = records()
    rows = [
        {"log_s": float(s), "advantage": float(a), "length": 64, "text": "unused"}
        for s, a in zip(table["log_s"], table["advantage"], strict=True)
    ]
    arrow = pa.table({name: values.tolist() for name, values in table.items()})
    want = gspo.fit_clip_range(table)
    for given in (rows, arrow, arrow.to_pandas()):
        got = gspo.fit_clip_range(given)
        assert (got.low, got.high, got.interval) == (want.low, want.high, want.interval)


def test_only_off_policy_responses_with_an_advantage_and_a_log_s_count(run_path):
    samples = samples_of_run(open_run(run_path))
    # Of 16 groups 4 are in minibatch 1; group 1 has no advantage, one response of group 5 no log s.
    assert samples.log_s.numel() == NUM_STEPS * (11 * GROUP - 1)
    assert samples.num_groups == NUM_STEPS * 11
    assert float(samples.cut.double().mean()) == pytest.approx(11 / 87)
    minibatch = torch.arange(600) // 300 + 1
    assert samples_of_records(records(minibatch=minibatch)).log_s.numel() == 300


def test_groups_of_different_steps_are_different(run_path):
    step = torch.arange(600) // 300
    samples = samples_of_records(records(step=step, group=torch.zeros(600)))
    assert samples.num_groups == 2
    assert torch.equal(samples.group, step)


def test_noise_over_many_lengths_is_cut_alike_by_a_length_fair_range(fit):
    assert fit.recommend == "length_fair"
    assert isinstance(fit.clip, LengthFairClip)
    assert fit.law.noise.value == pytest.approx(0.5, abs=0.05)
    assert sum(bucket.count for bucket in fit.buckets) == fit.num_responses
    fixed = [bucket.cut_share for bucket in fit.buckets if bucket.count > 50]
    fair = [bucket.cut_share_length_fair for bucket in fit.buckets if bucket.count > 50]
    assert max(fixed) - min(fixed) > 0.25
    assert max(fair) - min(fair) < 0.12
    assert sum(b.count * b.cut_share for b in fit.buckets) / fit.num_responses == pytest.approx(
        0.15, abs=0.01
    )
    assert fit.buckets[0].outside_share == pytest.approx(2 * fit.buckets[0].cut_share, abs=0.1)


def test_drift_asks_for_a_fixed_range_and_says_why(tmp_path):
    fit = gspo.fit_clip_range(write_run(tmp_path / "drift", drift=2e-3))
    assert fit.recommend == "fixed"
    assert fit.clip == fit.fixed.clip
    assert any(reason.startswith("drift") for reason in fit.law.against_length_fair)


def test_equal_lengths_have_no_exponent_and_a_fixed_range():
    fit = gspo.fit_clip_range(records())
    report = as_json(fit)
    assert (report["exponent"], report["exponent_interval"]) == (None, [None, None])
    assert fit.recommend == "fixed"


def test_the_run_is_shown_in_parts(fit):
    assert [(s.first_step, s.last_step) for s in fit.spans] == [(1, 2), (3, 4), (5, 6), (7, 8)]
    assert all(s.low and s.high for s in fit.spans)
    few = fit_samples(fit.samples.where(fit.samples.step != 8), 0.15)
    assert (few.spans[-1].first_step, few.spans[-1].low) == (7, None)


def test_the_interval_narrows_with_more_groups(fit):
    half = fit_samples(fit.samples.where(fit.samples.step > 0), 0.15)
    assert half.interval == fit.interval  # nothing is drawn anew
    width = fit.interval["high"][1] - fit.interval["high"][0]
    some = fit.samples.where(fit.samples.step <= 6)
    fewer = fit_samples(some, 0.15)
    assert fewer.interval["high"][1] - fewer.interval["high"][0] > width


def test_too_few_responses_or_groups_are_refused_with_what_there_is(tmp_path):
    path = write_run(tmp_path / "short", steps=2)
    with pytest.raises(
        DataError, match=r"88 responses of positive and 86 .* wanted 256 of each sign in 32 groups"
    ):
        gspo.fit_clip_range(path)
    with pytest.raises(DataError, match="300 responses of positive and 300 .* in 3 groups"):
        gspo.fit_clip_range(records(group=torch.arange(600) % 3))
    with pytest.raises(DataError, match="0 responses of positive"):
        gspo.fit_clip_range(records(minibatch=torch.ones(600)))
    result = command(path)
    assert result.exit_code == 3


def test_messages_name_what_is_wrong():
    table = records()
    with pytest.raises(DataError, match=r"records have no 'length'"):
        gspo.fit_clip_range({"log_s": table["log_s"], "advantage": table["advantage"]})
    with pytest.raises(DataError, match="600 values of log_s and 3 of group"):
        gspo.fit_clip_range(records(group=[1, 2, 3]))
    with pytest.raises(DataError, match="column 'length' does not hold numbers"):
        gspo.fit_clip_range(records(length=["long"] * 600))
    with pytest.raises(DataError, match="2 values of which 0 are mappings"):
        gspo.fit_clip_range([1, 2])
    with pytest.raises(DataError, match="there is no folder"):
        gspo.fit_clip_range("runs/nowhere")
    with pytest.raises(RecipeError, match="cut share is 0.7"):
        gspo.fit_clip_range(table, cut_share=0.7)


def test_a_damaged_step_is_named_and_left_out(tmp_path):
    path = write_run(tmp_path / "damaged")
    (path / "steps" / "000003.parquet").write_bytes(b"PAR1 cut short")
    result = command(path, "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["num_steps"] == NUM_STEPS - 1
    assert [damage["path"].endswith("000003.parquet") for damage in report["damaged"]] == [True]
    assert "left out: 000003.parquet" in command(path).stdout


def test_json_has_the_stable_keys_and_nothing_else_on_standard_output(run_path):
    result = command(run_path, "--cut-share", "0.2", "--json")
    report = json.loads(result.stdout)
    assert report.keys() >= KEYS
    assert report["cut_share"] == 0.2
    assert report["length_fair"].keys() == {"low", "high"}
    assert report["interval"]["low"][0] <= report["low"] <= report["interval"]["low"][1]
    assert report["buckets"][0].keys() >= {"length", "count", "mean", "spread", "outside_share"}
    assert report["recommend"] in {"fixed", "length_fair"}


def test_the_page_for_people_ends_with_recipe_lines_that_load(run_path, fit):
    result = command(run_path)
    assert result.exit_code == 0
    for words in ("By length in tokens", "recommended: length fair", "fitted", "1 to 2"):
        assert words in result.stdout
    assert result.stdout.rstrip().endswith(recipe_lines(fit.clip))
    band = fit.length_fair
    recipe = gspo.load_recipe(
        "demo", [f"objective.clip={{length_fair: {{low: {band.low}, high: {band.high}}}}}"]
    )
    assert recipe.objective.clip.length_fair.low == band.low
    assert as_json(fit)["recipe"] == recipe_lines(fit.clip)


def test_recipe_numbers_are_never_text():
    assert recipe_lines(LengthFairClip(low=1e-5, high=12.345)).endswith(
        "clip: {length_fair: {low: 0.00001, high: 12.3}}"
    )


def test_the_picture_is_one_page_beside_the_run(run_path):
    result = command(run_path, "--picture")
    page = (run_path / "calibrate.html").read_text()
    assert f"picture: {run_path / 'calibrate.html'}" in result.stdout
    assert page.count("<html") == 1
    assert 'src="http' not in page


def test_a_run_at_the_ceiling_says_so(tmp_path):
    path = write_run(tmp_path / "wide")
    before = gspo.fit_clip_range(path)
    assert before.notes == ()
    event = {"step": 4, "kind": "clip_fixed", "low_held": "ceiling", "high_held": "measured"}
    (path / "events.jsonl").write_text(json.dumps(event) + "\n")
    assert (
        "after step 4 the low side in force was held at the ceiling of 0.1"
        in (gspo.fit_clip_range(path).notes[0])
    )
    (path / "events.jsonl").write_text("")
    last = {"step": 8, "clip/low": 0.2, "clip/high": 0.2}
    (path / "metrics.jsonl").write_text(json.dumps(last) + "\n")
    assert "reached the ceiling" in gspo.fit_clip_range(path).notes[0]


def test_a_range_at_floor_or_ceiling_or_against_the_advantage_says_so():
    table = records()
    notes = gspo.fit_clip_range({**table, "log_s": table["log_s"] * 100}).notes
    assert [note.split(":")[0] for note in notes] == [
        "low is held at the ceiling",
        "high is held at the ceiling",
    ]
    notes = gspo.fit_clip_range({**table, "log_s": -table["log_s"]}).notes
    assert "most responses of negative advantage moved against it" in notes[0]
    assert "most responses of positive advantage moved against it" in notes[1]
