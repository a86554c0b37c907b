"""Functions named in a recipe: found, recorded by digest, or a message of what was looked for."""

import hashlib
import sys

import pytest

from gspo.errors import RecipeError
from gspo.verifiers.function import FunctionVerifier
from gspo.verifiers.loading import load_function

CODE = """
from dataclasses import dataclass

@dataclass
class Settings:
    factor: float = 2.0

COUNT = 3

def my_reward(completion, answer):
    return Settings().factor * (completion == answer)

def other(completion):
    return 0.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rewards.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_from_a_file(folder):
    loaded = load_function("rewards.py:my_reward")
    assert loaded.function("42", "42") == 2.0
    assert loaded.path == folder / "rewards.py"
    assert loaded.sha256 == hashlib.sha256(CODE.encode()).hexdigest()
    FunctionVerifier(loaded.function, "mine")
    assert load_function(f"{folder}/rewards.py:my_reward").function is loaded.function
    assert not (folder / "__pycache__").exists()


def test_from_a_module(folder):
    (folder / "pack_for_gspo").mkdir()
    (folder / "pack_for_gspo" / "__init__.py").write_text("")
    (folder / "pack_for_gspo" / "scores.py").write_text(CODE)
    loaded = load_function("pack_for_gspo.scores:other")
    assert loaded.function("x") == 0.0
    assert loaded.path == folder / "pack_for_gspo" / "scores.py"
    assert loaded.sha256 == hashlib.sha256(CODE.encode()).hexdigest()


def test_a_changed_file_is_run_anew(folder):
    assert load_function("rewards.py:my_reward").function("a", "a") == 2.0
    (folder / "rewards.py").write_text(CODE.replace("2.0", "3.0"))
    assert load_function("rewards.py:my_reward").function("a", "a") == 3.0


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("my_reward", "is 'my_reward'; wanted 'path/to/file.py:name' or 'package.module:name'"),
        (":my_reward", "wanted 'path/to/file.py:name'"),
        ("rewards.py:", "wanted 'path/to/file.py:name'"),
        ("absent.py:f", r"'absent\.py:f': there is no file .*absent\.py"),
        ("rewards.py:my_rewrd", "has no function 'my_rewrd'; did you mean 'my_reward'"),
        ("rewards.py:COUNT", "has no function 'COUNT'"),
        ("no_such_package_x:f", "found no source file of a module 'no_such_package_x'"),
        ("no_such_package_x.y:f", r"'no_such_package_x\.y' \(ModuleNotFoundError"),
        ("sys:exit", "found no source file of a module 'sys'"),
    ],
)
def test_what_was_looked_for_is_named(folder, place, message):
    with pytest.raises(RecipeError, match=message):
        load_function(place)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def f(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("import no_such_package_x", "ModuleNotFoundError: No module named 'no_such_package_x'"),
    ],
)
def test_a_file_that_does_not_run_is_named_with_its_reason(folder, code, reason):
    (folder / "broken.py").write_text(code)
    with pytest.raises(RecipeError) as error:
        load_function("broken.py:f")
    assert f"running {folder / 'broken.py'} failed:" in str(error.value)
    assert reason in str(error.value)
    assert error.value.__cause__ is not None
    assert not [name for name in sys.modules if name.startswith("gspo_verifier_broken")]
