"""The pages do what they say: Python runs and prints what stands below it, commands parse, recipes
load, links lead somewhere, and the tables of objectives and commands are those of the code."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from gspo.cli.main import build_app
from gspo.objectives import OBJECTIVES
from gspo.recipes.load import LIBRARY, load_recipe, recipe_from
from gspo.recipes.resume import resolve
from gspo.recipes.yaml_text import read_yaml
from tests.docs.pages import PAGES, README, ROOT, anchors, blocks, commands
from tests.e2e.conftest import DENSE, SMALL, without

NOT_OURS = {"source", "pip"}  # commands whose arguments this test knows nothing about
#: Twelve steps, as a page opens step 12; enough responses that clip: auto fixes its range in them.
SETTINGS = (
    *without(SMALL, "trainer.", "rollout.group"),
    "trainer.steps=12",
    "trainer.minibatches=4",
    "trainer.checkpoint_every=0",
    "rollout.group=24",
)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the runs and files that the pages speak of; the runs are one small real one."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "dense.py").write_text(DENSE)
    shutil.copy(LIBRARY / "own-data.yaml", folder / "my-recipe.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("GSPO_CACHE", str(folder / "cache"))
        result = CliRunner().invoke(build_app(), ["train", "demo", "name=demo", *SETTINGS])
        assert result.exit_code == 0, result.stderr
    for name in ("add4", "look"):
        shutil.copytree(folder / "runs" / "demo", folder / "runs" / name)
    return folder


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@each_page
def test_python_blocks_run_and_print_what_stands_below(page, folder, monkeypatch, capsys):
    """The blocks of a page go on from one another, as a reader would type them."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(text_of(page), "python"):
        if block.mark == "notest":
            continue
        exec(compile("\n" * block.line + block.text, page.name, "exec"), names)
        printed = capsys.readouterr().out
        if block.output is not None:
            assert lines(printed) == lines(block.output), f"{page.name}:{block.line}"


@each_page
def test_a_block_that_is_not_run_says_why(page):
    marked = [block for block in blocks(text_of(page), "python") if block.mark]
    assert [(b.line, b.mark) for b in marked if b.mark != "notest" or not b.reason] == []


def test_the_range_that_the_how_to_reads_was_fixed(folder):
    """Otherwise its block would loop over nothing."""
    assert '"kind": "clip_fixed"' in (folder / "runs" / "look" / "events.jsonl").read_text()


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The full name of a gspo command and its arguments, as the command line takes them apart."""
    command, names, rest = typer.main.get_command(build_app()), [], words
    while isinstance(command, TyperGroup):
        name, *rest = rest
        command = command.commands[name]
        names.append(name)
    return " ".join(names), command.make_context(names[-1], rest).params


def check_gspo(words: list[str]) -> None:
    """The command exists, takes these arguments, and its settings are those of a recipe."""
    name, given = parsed(words)
    overrides = given.get("overrides") or []
    if name == "train":
        resolve(given["recipe"], overrides, resume=given["resume"])
    elif name == "coldstart":
        load_recipe(given["recipe"], overrides)
    elif overrides:
        load_recipe(given.get("recipe") or Path(given["target"]) / "recipe.yaml", overrides)


@each_page
def test_every_command_is_one(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    for first, *rest in commands(text_of(page)):
        if first == "gspo":
            check_gspo(rest)
        elif first == "make":
            assert rest[0] in targets
        elif first == "python":
            assert (ROOT / rest[0]).is_file()
        else:
            assert first in NOT_OURS


def test_the_table_of_commands_is_complete():
    rows = re.findall(r"^\| `gspo (\w+)[^`]*` \|", text_of(README), re.M)
    app = typer.main.get_command(build_app())
    assert isinstance(app, TyperGroup)
    assert sorted(rows) == sorted(app.commands)


@each_page
def test_every_piece_of_a_recipe_loads(page):
    demo = read_yaml((LIBRARY / "demo.yaml").read_text(), "demo.yaml").values
    for block in blocks(text_of(page), "yaml"):
        piece = read_yaml(block.text, f"{page.name}:{block.line}").values
        recipe_from({**demo, **piece})


@each_page
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text_of(page))
    for target, anchor in links:
        if target.startswith("https://"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(text_of(path)), f"{target}#{anchor}"


def test_the_table_of_objectives_is_that_of_the_code():
    rows = {
        name: (divisor, values)
        for name, divisor, values in re.findall(
            r"^\| `(\w+)` \|[^|]+\|[^|]+\| ([^|]+) \| ([^|]+) \|$", text_of(README), re.M
        )
    }
    assert list(rows) == list(OBJECTIVES)
    words = {"responses": "responses", "tokens": "tokens", "constant": "responses x limit"}
    for name, cls in OBJECTIVES.items():
        objective: Any = cls(max_tokens=8) if name == "dr_grpo" else cls()
        divisor, values = rows[name]
        assert divisor == words[cls.denominator], name
        if name == "sapo":
            assert f"{objective.tau_pos}, {objective.tau_neg}" in values
        elif name != "gspo_token":
            assert f"{objective.clip.low:g}, {objective.clip.high:g}" in values, name


def test_the_page_of_objectives_cites_what_the_code_cites():
    text = text_of(ROOT / "docs" / "objectives.md")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    for name, cls in OBJECTIVES.items():
        assert cls.source in sections[name], name


def test_no_figure_is_left_open():
    assert re.findall(r"@@\w+@@", text_of(README)) == []


def test_a_block_knows_what_stands_around_it():
    page = (
        "<!-- notest: slow -->\n```python notest\na\n```\n\n```python\nb\n```\n\n```text\nc\n```\n"
    )
    first, second = blocks(page, "python")
    assert (first.mark, first.reason, first.output, first.text) == ("notest", "slow", None, "a\n")
    assert (second.line, second.reason, second.output) == (6, None, "c\n")


def test_a_command_may_go_on_in_the_next_line():
    page = "```bash\ngspo train demo \\\n    seed=1  # why\n\nmake demo\n```\n"
    assert commands(page) == [["gspo", "train", "demo", "seed=1"], ["make", "demo"]]
