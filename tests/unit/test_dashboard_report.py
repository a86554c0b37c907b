"""The report: one file that asks for nothing, runs nothing from a run, and tells the run's numbers."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.dashboard.report import MAX_RESPONSES, MAX_STEPS, write_report
from gspo.errors import DataError
from gspo.recorders.reader import open_run
from gspo.recorders.run_folder import RunFolder
from gspo.stats import Histogram, Mean
from gspo.types import Alarm
from tests.recorder_rows import row

RECIPE = "objective: {name: gspo, clip: auto, cut_share: 0.15}\ntrainer: {steps: 5}\n"
HOSTILE = (
    "</script><script>document.title = 'owned'</script><!--<script>\u2028\u2029\u202e\x1b[2J\ud800"
    "<img src=http://example.org onerror=alert(1)> & ]]> \"' </title></head>"
)
CHROMIUM = Path("/usr/bin/chromium")


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and the text of each script."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.cdata_elem == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data

    @property
    def answers(self) -> dict[str, Any]:
        (text,) = [text for attributes, text in self.scripts if attributes.get("id") == "data"]
        return json.loads(text)["answers"]

    @property
    def policy(self) -> str:
        (found,) = [
            attributes["content"] or ""
            for tag, attributes in self.elements
            if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
        ]
        return found


def record(path: Path, *, text: str = "2", num_steps: int = 5, num_groups: int = 2) -> RunFolder:
    """Steps of groups of 24 responses."""
    folder = RunFolder.create(path, info={"model": "/somewhere/a"}, recipe=RECIPE)
    for step in range(1, num_steps + 1):
        texts = {"text": text, "prompt": text, "failure": text, "prompt_id": text}
        rows = [
            row(group=g, sample=s, log_s=0.5 if (g, s) == (3, 7) else 0.1, reward=None, **texts)
            for g in range(num_groups)
            for s in range(24)
        ]
        numbers = {"reward/mean": Mean(step, 8), "log_s/histogram": Histogram.of(torch.zeros(3))}
        folder.step(step, {**numbers, text: Mean(1, 1)} if text != "2" else numbers, rows)
    folder.alarm(Alarm(1, text, 0.5, None, text, text))
    folder.finished(num_steps)
    folder.close()
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a run whose every text is hostile."""
    path = tmp_path_factory.mktemp("runs") / "<script>alert(1)<"
    record(path, text=HOSTILE)
    return write_report(path, path / "report.html")


def test_a_text_of_a_run_cannot_leave_the_data(hostile):
    page = Page(hostile)
    assert len(page.scripts) == 3  # its own, plotly, and the data
    assert [tag for tag, _ in page.elements].count("img") == 0
    (answers,) = page.answers["responses"].values()
    shown = HOSTILE.replace("\ud800", "\ufffd")
    assert {row["text"] for step in answers.values() for row in step["rows"]} == {shown}
    (overview,) = page.answers["overview"].values()
    assert overview["alarms"][0]["cause"] == shown
    assert overview["name"] == "<script>alert(1)<"
    raw = hostile.read_text(encoding="utf-8")
    data = raw[raw.index('id="data"') :].partition("</script>")[0]
    assert not re.search("[<>&\u2028\u2029]", data.partition(">")[2])


def test_nothing_comes_from_elsewhere(hostile):
    page = Page(hostile)
    references = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action", "poster") and value
    ]
    assert [r for r in references if not r.startswith(("data:", "#"))] == []
    styles = re.findall(r"<style>(.*?)</style>", hostile.read_text(encoding="utf-8"), re.S)
    assert not re.search(r"url\((?!['\"]?data:)|@import", "".join(styles))


def test_the_policy_lists_the_scripts_and_nothing_else(hostile):
    page = Page(hostile)
    executed = [text for attributes, text in page.scripts if attributes.get("id") != "data"]
    wanted = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in executed]
    directives = dict(part.strip().split(" ", 1) for part in page.policy.split(";"))
    assert directives["script-src"].split() == [f"'sha256-{digest}'" for digest in wanted]
    assert directives["default-src"] == "'none'"
    tags = [tag for tag, _ in page.elements]
    assert tags.index("meta") < tags.index("script")
    assert not [name for _, attributes in page.elements for name in attributes if name[:2] == "on"]


def test_the_numbers_are_those_of_the_folder(tmp_path):
    path = record(tmp_path / "a").path
    answers = Page(write_report(path, tmp_path / "out" / "a.html")).answers
    (run,) = answers["runs"]["runs"]
    assert (run["name"], run["status"], run["step"]) == ("a", "finished", 5)
    columns = answers["metrics"][run["id"]]
    recorded = open_run(path).columns("reward/mean")
    assert columns["step"] == recorded["step"]
    assert columns["columns"]["reward/mean"] == recorded["reward/mean"]
    assert list(answers["units"][run["id"]]) == ["1", "3", "5"]
    assert answers["overview"][run["id"]]["steps"] == [1, 3, 5]
    assert answers["recipe"][run["id"]]["text"] == RECIPE
    assert sum(answers["histograms"][run["id"]]["log_s/histogram"]["counts"][0]) == 3
    assert answers["definitions"]["metrics"]
    assert str(tmp_path) not in json.dumps(answers)


def test_whole_groups_of_responses_those_that_moved_most_first(tmp_path):
    path = record(tmp_path / "a", num_steps=1, num_groups=5).path
    answers = Page(write_report(path, path / "report.html")).answers
    ((step,),) = [list(steps.values()) for steps in answers["responses"].values()]
    groups = [row["group"] for row in step["rows"]]
    assert groups == [0] * 24 + [3] * 24
    assert len(groups) <= MAX_RESPONSES
    ((units,),) = [list(steps.values()) for steps in answers["units"].values()]
    assert len(units["row"]) == 120


def test_a_long_run_is_thinned_between_its_ends(tmp_path):
    path = record(tmp_path / "a", num_steps=1).path
    lines = [json.dumps({"step": s, "reward/mean": s / 2000}) for s in range(1, 2001)]
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    (held,) = Page(write_report(path, path / "report.html")).answers["metrics"].values()
    assert len(held["step"]) == MAX_STEPS
    assert (held["step"][0], held["step"][-1]) == (1, 2000)
    assert held["columns"]["reward/mean"] == [step / 2000 for step in held["step"]]


def test_a_run_without_steps_has_a_report(tmp_path):
    folder = RunFolder.create(tmp_path / "a", info={}, recipe=RECIPE)
    folder.close()
    answers = Page(write_report(folder.path, tmp_path / "a.html")).answers
    assert list(answers["units"].values()) == [{}]


def test_the_command_writes_into_the_run_folder(tmp_path):
    path = record(tmp_path / "a").path
    result = CliRunner().invoke(build_app(), ["report", str(path), "--json"])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report == {
        "report": str(path / "report.html"),
        "bytes": os.path.getsize(path / "report.html"),
    }
    result = CliRunner().invoke(
        build_app(), ["report", str(path), "--to", str(tmp_path / "b.html")]
    )
    assert result.stdout.startswith(str(tmp_path / "b.html"))
    assert (tmp_path / "b.html").is_file()


def test_no_run_is_an_error(tmp_path):
    with pytest.raises(DataError, match="run.json"):
        write_report(tmp_path, tmp_path / "report.html")


def test_it_never_loads_torch(tmp_path):
    path = record(tmp_path / "a").path
    script = (
        "import sys; from gspo.dashboard.report import write_report; "
        f"write_report({str(path)!r}, {str(path / 'report.html')!r}); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "False\n", done.stderr


def test_it_opens_from_disk_without_a_network(hostile):
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    asked: list[str] = []
    said: list[str] = []
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(hostile.as_uri())
        page.wait_for_selector("body[data-ready='1']", timeout=60_000)
        shown = page.get_attribute("[data-metric='reward/mean']", "data-value")
        title = page.title()
        for view in page.locator("#views button").all():
            view.click()
            page.wait_for_function("document.body.dataset.ready === '1'")
            assert "is not in this report" not in page.inner_text("#main")
        browser.close()
    assert asked[0] == hostile.as_uri()
    assert [url for url in asked[1:] if not url.startswith(("data:", "blob:"))] == []
    assert said == []
    assert float(shown or "nan") == 5 / 8
    assert "owned" not in title
