"""`gspo gap` on run folders."""

import json
import math

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.diagnostics.calibration import PROVISIONAL_CLIP
from gspo.recorders.run_folder import RunFolder
from gspo.stats import Mean
from tests.recorder_rows import row

BAND = {"clip/low": Mean(0.01, 1), "clip/high": Mean(0.02, 1)}


def folder(tmp_path, rows, stats=BAND):
    path = tmp_path / "a"
    run = RunFolder.create(path, info={}, recipe="objective: gspo\n")
    run.step(1, stats, rows)
    run.close()
    return str(path)


def gap(*arguments):
    return CliRunner().invoke(build_app(), ["gap", *arguments])


def responses(shift):
    old = [-1.0, -2.0, -0.5]
    return [
        row(sample=k, tokens=[1, 2, 3], old_logp=old, logp=old, engine_logp=[x - s for x in old])
        for k, s in enumerate([shift, shift * 0.9, shift * 1.1])
    ]


def test_a_small_gap_is_safe_and_a_bias_is_not(tmp_path):
    result = gap(folder(tmp_path, responses(1e-4)), "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["verdict"]) == (0, "safe")
    assert report["mean"] == pytest.approx(1e-4, rel=1e-3)
    assert report["band"] == pytest.approx(-math.log1p(-0.01))
    strict = gap(str(tmp_path / "a"), "--clip", "3e-4,4e-4", "--json")
    assert (strict.exit_code, json.loads(strict.stdout)["verdict"]) == (4, "unsafe")
    shown = gap(str(tmp_path / "a"), "--clip", "3e-4,4e-4")
    assert "UNSAFE as old log-probs under a band of 0.0003 nats: bias" in shown.stdout


def test_a_run_that_still_measures_has_no_range_to_judge_by(tmp_path):
    band = {"clip/low": Mean(PROVISIONAL_CLIP.low, 1), "clip/high": Mean(PROVISIONAL_CLIP.high, 1)}
    result = gap(folder(tmp_path, responses(1e-4), band))
    assert result.exit_code == 3
    assert "has not measured its clip range yet" in result.stderr
    assert gap(str(tmp_path / "a"), "--clip", "0.01,0.01").exit_code == 0


def test_a_run_without_a_band_says_what_to_give(tmp_path):
    result = gap(folder(tmp_path, responses(1e-4), {}))
    assert result.exit_code == 3
    assert "--clip LOW,HIGH" in result.stderr


def test_what_belongs_to_a_recipe_is_refused_beside_a_run(tmp_path):
    path = folder(tmp_path, responses(1e-4))
    for extra in (["optimizer.lr=3"], ["--engine-dtype", "bfloat16"]):
        result = gap(path, *extra)
        assert result.exit_code == 2
        assert "is a recorded run" in result.stderr
    assert gap(path, "--clip", "wide").exit_code == 2
    assert gap(path, "--engine-dtype", "float16").exit_code == 2


def test_damage_is_named(tmp_path):
    path = folder(tmp_path, responses(1e-4))
    (tmp_path / "a" / "steps" / "000002.parquet").write_bytes(b"PAR1")
    result = gap(path)
    assert result.exit_code == 0
    assert "left out" in result.stderr
    assert "000002.parquet" in result.stderr


def test_the_picture_holds_the_numbers_and_needs_nothing_else(tmp_path):
    path = folder(tmp_path, responses(1e-4))
    page = tmp_path / "gap.html"
    assert gap(path, "--picture", str(page)).exit_code == 0
    text = page.read_text()
    assert "mean of a response, by length" in text
    assert "3 values" in text
    assert 'src="http' not in text
