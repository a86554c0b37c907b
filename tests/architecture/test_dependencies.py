"""What the package imports, pyproject.toml installs: a fresh environment has no other."""

import ast
import re
import sys
import tomllib

import pytest

from tests.architecture.test_imports import imported

#: Modules whose distribution has another name.
DISTRIBUTIONS = {
    "latex2sympy2_extended": "latex2sympy2-extended",
    "math_verify": "math-verify",
    "reasoning_gym": "reasoning-gym",
    "yaml": "PyYAML",
}
#: Modules that always come with what is declared.
COME_WITH = {
    "anyio": "starlette",
    "huggingface_hub": "transformers",
    "jinja2": "torch",
    "packaging": "transformers",
    "pydantic_core": "pydantic",
}


@pytest.fixture(scope="module")
def declared(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return {re.match(r"[\w-]+", line)[0] for lines in lists for line in lines}


def test_every_import_is_declared(sources, declared):
    own = sys.stdlib_module_names | {"gspo"}
    roots = {
        (name.split(".")[0], source.name)
        for source in sources
        for node in ast.walk(source.tree)
        for name in imported(node)
    }
    foreign = {(name, file) for name, file in roots if name not in own}
    assert len(foreign) > 50
    assert {(name, file) for name, file in foreign if distribution(name) not in declared} == set()


def test_what_is_declared_is_tested_at_one_version(root, declared):
    pinned = {
        line.split("==")[0]
        for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    assert declared - pinned == set()


def distribution(module: str) -> str:
    return COME_WITH.get(module, DISTRIBUTIONS.get(module, module))
