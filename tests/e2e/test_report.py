"""`gspo train` leaves a report behind; one that cannot be written costs the run nothing."""

from __future__ import annotations

import json

from gspo.dashboard import report
from gspo.recorders.reader import open_run


def test_a_finished_run_has_a_report(gspo, small):
    result = gspo("train", "demo", "name=a", *small, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["report"] == "runs/a/report.html"
    assert "runs/a/report.html" in result.stderr
    page = open_run("runs/a").path / "report.html"
    assert '"status":"finished"' in page.read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_said(gspo, small, monkeypatch):
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "write_report", full)
    result = gspo("train", "demo", "name=a", *small, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["report"] is None
    assert "report.html could not be written (OSError: [Errno 28] No space" in result.stderr
    assert open_run("runs/a").status == "finished"
