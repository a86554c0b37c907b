"""The page's parts: which files, in which order. The server refers to them, the report holds them.

index.html marks two places, each alone on its line: `<!-- style -->` in the head and
`<!-- scripts -->` at the end of the body.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from gspo.errors import DataError

STATIC = Path(__file__).parent / "static"
PAGE, STYLE = "index.html", "style.css"
#: All scripts of the page as one: forty requests would keep the first chart waiting.
BUNDLE, PLOTLY = "page.js", "plotly.js"
#: What the bundle holds, in the order in which it runs.
SCRIPTS = (
    "util.js",
    "format.js",
    "symlog.js",
    "cut.js",
    "fit.js",
    "theme.js",
    "state.js",
    "source_report.js",
    "source.js",
    "store.js",
    "definitions.js",
    "tip.js",
    "numbers.js",
    "panels.js",
    "charts.js",
    "lines.js",
    "views.js",
    "runs.js",
    "header.js",
    "stepper.js",
    "keys.js",
    "verdict.js",
    "alarms.js",
    "view_working.js",
    "trust_histogram.js",
    "trust_range.js",
    "trust_length.js",
    "trust_events.js",
    "view_trust.js",
    "drives_tokens.js",
    "view_drives.js",
    "rollouts_table.js",
    "rollouts_group.js",
    "view_rollouts.js",
    "view_groups.js",
    "view_gap.js",
    "view_speed.js",
    "view_recipe.js",
    "live.js",
    "app.js",
)
STYLE_MARK, SCRIPTS_MARK = "<!-- style -->", "<!-- scripts -->"


def static_text(name: str) -> str:
    """One file of the page."""
    return (STATIC / name).read_text(encoding="utf-8")


def bundle() -> str:
    """The page's own scripts, one after the other; each is a function that is called at once."""
    return "\n".join(f"/* {name} */\n{static_text(name)}" for name in SCRIPTS)


def plotly_file() -> Path:
    """The script of the installed plotly package, found without importing it.

    Raises DataError where there is none.
    """
    found = importlib.util.find_spec("plotly")
    for folder in (found and found.submodule_search_locations) or ():
        file = Path(folder) / "package_data" / "plotly.min.js"
        if file.is_file():
            return file
    raise DataError(
        "plotly is not installed with its script package_data/plotly.min.js, which draws the "
        "charts: pip install 'plotly>=6'"
    )


def assemble(styles: str, script: Callable[[str], str], before_scripts: str = "") -> str:
    """The page. styles: the element that stands for the style sheet. script: the element of a
    script by its name; PLOTLY comes last: it takes a second, and numbers need no chart.
    before_scripts: elements that the scripts read."""
    page = static_text(PAGE)
    scripts = "\n".join([before_scripts, script(BUNDLE), script(PLOTLY)])
    return page.replace(STYLE_MARK, styles, 1).replace(SCRIPTS_MARK, scripts.lstrip(), 1)


def served_page() -> str:
    """The page as the server gives it: everything by its own address."""
    return assemble(f'<link rel="stylesheet" href="/static/{STYLE}">', _referred)


def _referred(name: str) -> str:
    """PLOTLY is only fetched here: charts.js runs it, without keeping the page waiting."""
    if name == PLOTLY:
        return f'<link rel="preload" href="/{PLOTLY}" as="script">'
    return f'<script src="/static/{name}"></script>'
