"""Every key of the other trainers is either translated or not carried for a reason, and TRL's defaults
are those of the installed package when bench/trl_defaults.py wrote the table."""

import json
from pathlib import Path

import pytest

from gspo.errors import RecipeError
from gspo.recipes.importers import openrlhf_keys, trl_keys, verl_keys
from gspo.recipes.importers.convert import TRAINERS
from gspo.recipes.importers.draft import Draft, Given

TABLE = json.loads((Path(__file__).parents[1] / "importers" / "trl_defaults.json").read_text())


def test_trl_has_the_keys_of_the_package():
    package = set(TABLE["defaults"])
    assert package - trl_keys.KNOWN == set()
    gone = {"logging_dir", "save_safetensors", "use_liger_loss"}
    assert trl_keys.KNOWN - package == {*trl_keys.EARLIER, *gone, "env"}  # of a YAML file


def test_trl_has_the_defaults_of_the_package():
    package = {key: TABLE["defaults"][key] for key in trl_keys.DEFAULTS}
    assert dict(trl_keys.DEFAULTS) == package
    assert all(type(trl_keys.DEFAULTS[key]) is type(value) for key, value in package.items())


@pytest.mark.parametrize(
    "keys", [trl_keys, verl_keys, openrlhf_keys], ids=lambda keys: keys.__name__
)
def test_no_key_is_both(keys):
    assert set(keys.DEFAULTS) & set(keys.NOT_CARRIED) == set()


@pytest.mark.parametrize("name", list(TRAINERS))
def test_every_key_ends_in_the_report(name):
    """Given with its default, each key of a file gets exactly one fate or more, never none."""
    trainer = TRAINERS[name]
    given = {key: Given(value, "x line 1") for key, value in trainer.defaults.items()}
    if name == "trl":  # the two that exclude one another, and what has no default
        given |= {"steps_per_generation": Given(4, "x line 2")}
    draft = Draft(trainer.title, "x", given, trainer.defaults)
    trainer.to_recipe(draft)
    report = draft.report
    named = {
        line.key for lines in (report.taken, report.changed, report.not_carried) for line in lines
    }
    assert set(given) - named == set()


@pytest.mark.parametrize("name", list(TRAINERS))
def test_every_known_key_is_translated_or_has_a_reason(name):
    trainer = TRAINERS[name]
    assert trainer.known == {*trainer.defaults, *trainer.unused}


STRANGE = (None, "x", {"a": 1}, float("nan"))


@pytest.mark.parametrize("name", list(TRAINERS))
def test_a_strange_value_is_an_error_of_ours_or_a_draft(name):
    trainer = TRAINERS[name]
    broken = []
    for key in trainer.defaults:
        for value in STRANGE:
            draft = Draft(trainer.title, "x", {key: Given(value, "x line 1")}, trainer.defaults)
            try:
                trainer.to_recipe(draft)
            except RecipeError:
                pass
            except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
                broken.append((key, value, repr(error)))
    assert broken == []
