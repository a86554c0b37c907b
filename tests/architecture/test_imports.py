"""What is light stays light, and what is maths stays maths."""

import ast
import importlib
import subprocess
import sys

import pytest

LAYER_0 = {"types", "segments", "stats", "settings", "named_settings", "errors"}
LAYER_1 = {"objectives", "advantages", "ratios", "diagnostics"}
MATHS_MAY_IMPORT = sys.stdlib_module_names | {"gspo", "torch", "jaxtyping"}


@pytest.fixture(scope="module")
def maths(sources):
    layers = LAYER_0 | LAYER_1
    files = [s for s in sources if s.name.removesuffix(".py").split("/")[0] in layers]
    assert len(files) >= len(layers)
    return files


@pytest.mark.parametrize(
    "module", ["gspo", "gspo.settings", "gspo.recorders.reader", "gspo.cli.main"]
)
def test_importing_it_leaves_torch_alone(module):
    script = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr or f"import {module} imports torch"


def test_every_public_name_resolves():
    gspo = importlib.import_module("gspo")
    missing = [name for name in gspo.__all__ if not hasattr(gspo, name)]
    assert missing == []
    assert set(gspo.__all__) <= set(dir(gspo))


def test_layers_0_and_1_import_the_standard_library_torch_and_jaxtyping(maths):
    roots = {
        (source.name, name.split(".")[0])
        for source in maths
        for node in ast.walk(source.tree)
        for name in imported(node)
    }
    assert {(file, name) for file, name in roots if name not in MATHS_MAY_IMPORT} == set()


def test_layers_0_and_1_wait_for_no_device_and_talk_to_no_other_rank(maths):
    calls = [
        (f"{source.name}:{node.lineno}", ast.unparse(node.func))
        for source in maths
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
    ]
    assert [c for c in calls if c[1].endswith(".item") or c[1] in {"print", "open"}] == []
    assert not [s.name for s in maths if "torch.distributed" in s.text]


def imported(node: ast.AST) -> list[str]:
    """Modules that this statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module] if node.module and not node.level else []
    return []
