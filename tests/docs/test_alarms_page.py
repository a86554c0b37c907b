"""docs/alarms.md and the rules say the same."""

import re
from pathlib import Path

import pytest

from gspo.diagnostics.alarms.bell import REPEAT_STEPS, RULES
from gspo.diagnostics.alarms.rule import CLEAR_STEPS
from gspo.recipes.guards import RULES as GUARDS
from tests.docs.glossary import PAGE, documented, parse

TEXT = (Path(__file__).parents[2] / "docs" / "alarms.md").read_text(encoding="utf-8")
ALARMS, GUARDS_TEXT = TEXT.split("## Guards at start")
ENTRIES = {entry.names: entry.fields for entry in parse(ALARMS)}


def test_one_entry_a_rule_in_the_same_order():
    assert list(ENTRIES) == [(rule.name,) for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_entry_says_what_the_rule_says(rule):
    fields = ENTRIES[rule.name,]
    assert list(fields) == ["formula", "threshold", "evidence", "cause", "try"]
    assert fields["formula"] == rule.formula
    assert fields["evidence"] == rule.evidence
    assert fields["cause"] == rule.cause
    assert fields["try"] == rule.advice


def test_the_page_tells_how_often():
    assert f"measured {CLEAR_STEPS} times" in ALARMS
    assert f"every {REPEAT_STEPS} steps" in ALARMS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_metric_of_a_rule_is_in_the_glossary(rule):
    headings = {n for entry in parse(PAGE.read_text(encoding="utf-8")) for n in entry.names}
    assert set(rule.metrics) <= headings
    mentioned = set(re.findall(r"`([a-z_]+/[a-z0-9_@]+)`", f"{rule.formula} {rule.advice}"))
    assert [name for name in mentioned if not documented(name)] == []


def test_an_alarm_fits_the_terminals_line():
    """500 characters, with some evidence in numbers before the cause."""
    longest = max(RULES, key=lambda rule: len(rule.cause + rule.advice))
    assert len(longest.cause + longest.advice) < 300, longest.name


def test_the_table_of_guards_is_complete():
    assert re.findall(r"^\| `(\w+)` \|", GUARDS_TEXT, re.M) == list(GUARDS)
