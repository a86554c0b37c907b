"""Nothing that a run holds is executed, obeyed or followed, and nothing of it widens the page."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.dashboard.folder import run_id
from gspo.dashboard.report import write_report
from gspo.recorders.sanitize import visible, well_formed
from tests.browser.corpus import CORPUS
from tests.browser.hostile_runs import GROUP, PIECES, hostile_names, hostile_run

NARROW, WIDE = 360, 1600
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
#: Elements that the page itself never makes.
MADE = "script:not([src]), iframe, object, embed, img, form, base, meta[http-equiv], video, math, template"
HOVER = """() => [...document.querySelectorAll("section:not([hidden]) .chart")].filter((gd) => gd.data)
  .flatMap((gd) => gd.data.map((trace, curveNumber) => {
    Plotly.Fx.hover(gd, [{curveNumber, pointNumber: 0}]);
    return gd.querySelectorAll(".hoverlayer a, .legend a, .xtick a, .ytick a").length;
  })).filter((links) => links > 0)"""
VIEWS = {
    "working": {},
    "trust": {},
    "drives": {"row": 8},
    "rollouts": {"sort": "length"},
    "groups": {},
    "recipe": {},
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The folder of all hostile runs, and their ids."""
    folder = tmp_path_factory.mktemp("hostile")
    path = hostile_run(folder)
    names = [path, *hostile_names(folder, path)]
    return folder, {path.name: run_id(path.resolve()) for path in names}


@pytest.fixture(scope="module")
def attacked(hostile, look):
    from tests.browser.serving import Serving

    folder, ids = hostile
    with Serving(folder) as serving:
        viewer = look(serving.origin, ids)
        viewer.open("hostile")
        yield viewer


def harmless(viewer):
    """What must hold wherever the page is."""
    viewer.check()
    assert viewer.page.locator(MADE).count() == 0
    assert viewer.page.evaluate(OVERFLOW) == 0


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_stands(attacked, view, width):
    attacked.resize(width)
    attacked.go("hostile", view=view, step=2, **VIEWS[view])
    assert attacked.page.evaluate(HOVER) == []
    harmless(attacked)


@pytest.mark.parametrize("group", [0, 1])
def test_responses_and_reasons_are_shown_as_text(attacked, group):
    attacked.go("hostile", view="rollouts", step=2, group=group)
    cards = attacked.page.locator("article.response")
    shown = cards.evaluate_all(
        "(cards) => cards.map((card) => [card.dataset.row, card.querySelector('.text').textContent])"
    )
    assert len(shown) == GROUP
    for row, text in shown:
        wanted = visible(well_formed(CORPUS[int(row) % len(CORPUS)]))[:400]
        assert text[: len(wanted)] == wanted
    harmless(attacked)


def test_a_megabyte_is_shown_on_demand(attacked):
    row = CORPUS.index("A" * 1_000_000)
    attacked.go("hostile", view="rollouts", step=2, group=row // GROUP)
    card = attacked.page.locator(f"article.response[data-row='{row}']")
    card.get_by_role("button", name="show all 1,000,000 characters").click()
    attacked.settle()
    assert card.locator(".text").evaluate("(node) => node.textContent.length") == 1_000_000
    harmless(attacked)


def test_tokens_are_shown_as_text(attacked):
    attacked.go("hostile", view="drives", step=2, row=8)
    shown = attacked.page.locator(".token").all_text_contents()
    assert len(shown) > 5
    for at, text in enumerate(shown):
        piece = PIECES[(8 + at) % len(PIECES)]
        assert text == visible(piece).replace("\n", "\u21b5\n").replace("\t", "\u21e5"), piece


def test_names_stand_in_the_list_and_in_legends(attacked, hostile):
    _, ids = hostile
    attacked.resize(WIDE)
    names = list(ids)
    listed = attacked.page.locator(".run-name").all_text_contents()
    flat = [visible(name, one_line=True) for name in names]
    assert sorted(listed) == sorted(name if len(name) <= 80 else f"{name[:80]}\u2026" for name in flat)
    for view in ("working", "speed"):
        attacked.go(*names[1:6], *names[30:36], view=view)
        assert attacked.page.evaluate(HOVER) == []
        harmless(attacked)


def test_causes_are_shown_as_text(attacked):
    attacked.go("hostile", view="working")
    shown = attacked.page.locator(".alarm").all_text_contents()
    rules = dict.fromkeys(text[:100] for text in CORPUS)
    assert len(shown) == len(rules)
    for text, rule in zip(shown, rules, strict=True):
        assert visible(well_formed(rule), one_line=True)[:80] in text


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_report_of_it_is_harmless_too(hostile, look, tmp_path, width):
    folder, ids = hostile
    file = write_report(folder / "hostile", tmp_path / "report.html")
    viewer = look(file.as_uri(), ids, width=width)
    viewer.open("hostile")
    for view, chosen in VIEWS.items():
        viewer.go("hostile", view=view, **chosen)
        assert viewer.page.evaluate(HOVER) == []
        viewer.check()
        assert viewer.page.evaluate(OVERFLOW) == 0
    assert viewer.asked == [file.as_uri()]


def test_a_terminal_obeys_nothing(hostile):
    folder, ids = hostile
    for name in ids:
        said = CliRunner().invoke(build_app(), ["watch", str(folder / name), "--once"])
        assert said.exit_code == 0, said.output
        bad = {char for char in said.output if _obeyed(char)}
        assert bad == set(), name


def _obeyed(char: str) -> bool:
    return char not in "\n\u200c\u200d" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")


def test_the_page_and_the_terminal_show_the_same(attacked):
    assigned = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) != "Cn"
    ]
    texts = [*(text for text in CORPUS if len(text) < 10_000), "".join(assigned)]
    shown = attacked.page.evaluate(
        """(texts) => texts.map((units) => {
          let text = "";
          for (let at = 0; at < units.length; at += 10000) text += String.fromCharCode(...units.slice(at, at + 10000));
          return Array.from(G.visible(text), (char) => char.codePointAt(0));
        })""",
        [_units(text) for text in texts],
    )
    for text, codes in zip(texts, shown, strict=True):
        assert "".join(map(chr, codes)) == visible(text)


def _units(text: str) -> list[int]:
    """UTF-16, as JavaScript has it, lone surrogates too."""
    whole = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(whole[at : at + 2], "little") for at in range(0, len(whole), 2)]
