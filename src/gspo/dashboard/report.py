"""A run as one file: the dashboard's page with its scripts and the answers inside it. It opens from
disk, asks for nothing, and runs no script but those whose digests its policy lists.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gspo.dashboard import answers
from gspo.dashboard.answers_metrics import thinned
from gspo.dashboard.folder import RunFolderView, open_view
from gspo.dashboard.page import BUNDLE, STYLE, assemble, bundle, plotly_file, static_text
from gspo.dashboard.plain import json_bytes
from gspo.recorders.durable import new_folder, write_text

REPORT_FILE = "report.html"
MAX_STEPS = 600  # of the statistics, evenly thinned: more points than a chart has pixels
MAX_RESPONSES = 64  # a step, in whole groups
MAX_TOKENS = 50_000  # of those, unless one group has more: some 3 MB
HISTOGRAMS = ("log_s/histogram", "log_s/histogram_all")

#: What an HTML parser or an old JavaScript parser would take for its own; JSON has another way to
#: write each.
ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def write_report(run_path: Path | str, target: Path | str) -> Path:
    """Write it, and return its path. DataError where there is no run; ResourceError on a full
    disk."""
    target, run = Path(target), open_view(run_path)
    page = report_page(answers.RunIndex([run_path]), run.id)
    new_folder(target.parent)
    write_text(target, page)
    return target


def report_page(index: answers.RunIndex, run_id: str) -> str:
    """The whole page of one run."""
    scripts: dict[str, str] = {}

    def inline(name: str) -> str:
        scripts[name] = _script_text(name)
        return f"<script>{scripts[name]}</script>"

    body = assemble("", inline, before_scripts=_data_element(index, run_id))
    policy = POLICY.format(scripts=" ".join(f"'sha256-{_digest(s)}'" for s in scripts.values()))
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    style = f"<style>{static_text(STYLE)}</style>"
    return body.replace("<head>", f"<head>\n{head}\n{style}", 1)


def report_answers(index: answers.RunIndex, run_id: str) -> dict[str, Any]:
    """What the page asks for, answered in advance: every step's statistics (thinned), and the
    responses of the first, the middle and the last step."""
    run = index.find(run_id)
    overview = answers.overview(run)
    steps = _first_middle_last(overview["steps"])
    recorded = [name for name in HISTOGRAMS if name in overview["names"]]
    listed = [row for row in answers.runs(index)["runs"] if row["id"] == run_id]
    return {
        "runs": {"folder": run.name, "runs": listed},
        "definitions": answers.definitions(),
        "overview": {run.id: {**overview, "steps": steps}},
        "metrics": {run.id: _thinned(answers.metrics(run, ["*"]))},
        "histograms": {run.id: {name: answers.histograms(run, name) for name in recorded}},
        "units": {run.id: {step: answers.units(run, step) for step in steps}},
        "responses": {run.id: {step: _responses(run, step) for step in steps}},
        "top_tokens": {run.id: {step: answers.top_tokens(run, step) for step in steps}},
        "recipe": {run.id: answers.recipe(run)},
    }


def _data_element(index: answers.RunIndex, run_id: str) -> str:
    data = {"report": True, "answers": report_answers(index, run_id)}
    text = json_bytes(data).decode()
    return f'<script type="application/json" id="data">{text.translate(ESCAPED)}</script>'


def _script_text(name: str) -> str:
    """A script that can stand inside a page: the two texts that would end or split its element are
    written otherwise, which in a string or a regular expression means the same."""
    text = bundle() if name == BUNDLE else plotly_file().read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def _first_middle_last(steps: Sequence[int]) -> list[int]:
    chosen = {steps[0], steps[len(steps) // 2], steps[-1]} if steps else set()
    return sorted(chosen)


def _thinned(metrics: dict[str, Any]) -> dict[str, Any]:
    """At most MAX_STEPS rows, the first and the last among them."""
    rows = thinned(len(metrics["step"]), MAX_STEPS)
    columns = {n: [values[row] for row in rows] for n, values in metrics["columns"].items()}
    return {
        "step": [metrics["step"][row] for row in rows],
        "time": [metrics["time"][row] for row in rows],
        "columns": columns,
    }


def _responses(run: RunFolderView, step: int) -> dict[str, Any]:
    """Whole groups, those that moved most first, as long as there is room; one at least."""
    units = answers.units(run, step)
    groups: dict[int, list[int]] = {}
    for at, group in enumerate(units["group"]):
        groups.setdefault(group, []).append(at)

    def moved(members: list[int]) -> float:
        return max((abs(units["log_s"][at] or 0.0) for at in members), default=0.0)

    chosen: list[int] = []
    for members in sorted(groups.values(), key=moved, reverse=True):
        wanted = [*chosen, *members]
        num_tokens = sum(units["length"][at] for at in wanted)
        if chosen and (len(wanted) > MAX_RESPONSES or num_tokens > MAX_TOKENS):
            break
        chosen = wanted
    return {"rows": [answers.response(run, step, units["row"][at]) for at in sorted(chosen)]}
