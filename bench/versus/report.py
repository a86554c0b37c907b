"""Writes the numbers of bench/results/latest.json into docs/performance.md, between its markers.

python -m bench.versus.report
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.versus import results
from bench.versus.channel import ROOT
from bench.versus.plots import curves, ratios
from bench.versus.text import table

PAGE = ROOT / "docs" / "performance.md"
RATIOS, CURVES = "performance-ratios.png", "performance-curves.png"
NOTHING = "Not measured yet: `make bench`."


def filled(page: str, parts: Mapping[str, str]) -> str:
    """The page with each part between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`.

    >>> filled("<!-- bench:a -->old<!-- /bench:a -->", {"a": "new"})
    '<!-- bench:a -->\\nnew\\n<!-- /bench:a -->'
    """
    for name, text in parts.items():
        first, last = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
        pattern = re.compile(re.escape(first) + ".*?" + re.escape(last), re.DOTALL)
        if len(pattern.findall(page)) != 1:
            raise ValueError(f"the page must hold {first} ... {last} exactly once")
        replacement = f"{first}\n{text}\n{last}"
        page = pattern.sub(lambda _, new=replacement: new, page)
    return page


def parts_of(content: Mapping[str, Any], images: Path) -> dict[str, str]:
    """Figures with a floor, everything else, machine and versions; pictures on the way."""
    rows = content["rows"]
    wanted = [row for row in rows if row["floor"] is not None]
    others = [row for row in rows if row["floor"] is None]
    figures = table(wanted) if wanted else NOTHING
    if ratios(rows, images / RATIOS):
        figures += f"\n\n![Ratios, with floor and target](images/{RATIOS})"
    curve = f"![Over length and vocabulary](images/{CURVES})"
    return {
        "figures": figures,
        "curves": curve if curves(rows, images / CURVES) else NOTHING,
        "others": table(others) if others else NOTHING,
        "machine": machine(content) if rows else NOTHING,
    }


def machine(content: Mapping[str, Any]) -> str:
    """Where and with what the rows were measured."""
    about, rows = content["machine"], content["rows"]
    versions = content["versions"]
    commits = sorted({row["commit"] for row in rows})
    disturbed = sum(not row["quiet"] for row in rows)
    return (
        f"{about['processor']}, {about['cores']} cores, {about['memory_gb']:g} GB, "
        f"{', '.join(about['units'])}; two threads. Ours: {_listed(versions['ours'])}. "
        f"TRL's: {_listed(versions['peer'])}. Commit {', '.join(commits)}; "
        f"{disturbed} of {len(rows)} rows disturbed."
    )


def _listed(packages: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items())


def main() -> None:
    """Fills the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=results.LATEST)
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    images = given.page.parent / "images"
    images.mkdir(exist_ok=True)
    page = given.page.read_text(encoding="utf-8")
    given.page.write_text(
        filled(page, parts_of(results.load(given.results), images)), encoding="utf-8"
    )
    print(f"wrote {given.page}")


if __name__ == "__main__":
    main()
