"""A run that takes a second: two-digit sums, a model of a few thousand parameters."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gspo.cli.main import build_app

SMALL = [
    "model.hidden=16",
    "model.layers=1",
    "model.heads=2",
    "model.kv_heads=1",
    "model.intermediate=32",
    "model.max_positions=64",
    "data.options={digits: 2}",
    "data.num_prompts=16",
    "coldstart.steps=8",
    "coldstart.batch=16",
    "coldstart.warmup=2",
    "rollout.prompts=4",
    "rollout.group=4",
    "rollout.max_tokens=20",
    "trainer.steps=2",
    "trainer.minibatches=2",
    "trainer.checkpoint_every=1",
    "evaluate.prompts=4",
    "evaluate.samples=2",
    "verifier={kind: function, function: 'dense.py:reward'}",
]

#: Something that a model without training earns in different amounts, so that there is a gradient.
DENSE = """
def reward(prompt, completion):
    return len(set(completion)) / 14
"""


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def gspo(tmp_path: Path, cache: Path, monkeypatch) -> Callable[..., Result]:
    """Runs the command in an empty folder; cold starts are shared by all tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GSPO_CACHE", str(cache))
    (tmp_path / "dense.py").write_text(DENSE)

    def run(*arguments: str) -> Result:
        result = CliRunner().invoke(build_app(), list(arguments))
        if result.exception and not isinstance(result.exception, SystemExit | KeyboardInterrupt):
            raise result.exception
        return result

    return run


@pytest.fixture
def small() -> list[str]:
    """Settings of the small run."""
    return list(SMALL)


def without(settings: list[str], *prefixes: str) -> list[str]:
    """The settings that start with none of these."""
    return [setting for setting in settings if not setting.startswith(prefixes)]
