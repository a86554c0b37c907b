"""Nothing in the package runs code it was handed as data, and nothing swallows every error."""

import ast
from collections.abc import Iterator

import pytest

from gspo.dashboard.page import STATIC

BANNED_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
BANNED_BUILTINS = {"eval", "exec", "compile", "__import__"}
BANNED_CALLS = {
    "torch.load": "safetensors.torch.load_file",
    "yaml.load": "yaml.safe_load",
    "yaml.unsafe_load": "yaml.safe_load",
    "yaml.full_load": "yaml.safe_load",
    "os.system": "subprocess.run with a list",
    "os.popen": "subprocess.run with a list",
}
BANNED_KEYWORDS = {("shell", "True"), ("trust_remote_code", "True"), ("weights_only", "False")}

# A user's reward function may raise anything, and that is a failed verdict; so may the package of
# another service, and that ends the copy there; so may a loss under the conformance kit, and that
# is the finding. The command line turns what is left into an exit code. In the sandbox a judged
# program may raise anything, its process must not fall back into the fork server's code, and an
# error in a thread belongs to whoever waits for the result.
MAY_CATCH_EVERYTHING = {
    "verifiers/contained.py",
    "verifiers/sandbox/box.py",
    "verifiers/sandbox/runner.py",
    "verifiers/sandbox/zygote.py",
    "recorders/mirror.py",
    "testing/trial.py",
    "cli/main.py",
}

# The one file that is there to run a model's program: in a process that holds no answer, behind
# Landlock and seccomp. It is never imported by the trainer.
MAY_RUN_CODE = {"verifiers/sandbox/runner.py"}


#: What makes elements or code of a text. The dashboard shows text of a run as text only.
BANNED_IN_PAGES = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "setHTML", "document.write", "DOMParser",
    "createContextualFragment", "eval(", "Function(",
)  # fmt: skip


def dangers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and finding of everything that could run foreign code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            for name in [module] if module else [alias.name for alias in node.names]:
                if name.split(".")[0] in BANNED_MODULES:
                    yield node.lineno, f"import {name}"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in BANNED_BUILTINS:
                yield node.lineno, f"{called}()"
            if called in BANNED_CALLS:
                yield node.lineno, f"{called}(): use {BANNED_CALLS[called]}"
            for keyword in node.keywords:
                if (keyword.arg, ast.unparse(keyword.value)) in BANNED_KEYWORDS:
                    yield node.lineno, f"{keyword.arg}={ast.unparse(keyword.value)}"


def catches_everything(handler: ast.ExceptHandler) -> bool:
    """One that ends in `raise` cleans up and swallows nothing."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"})
        for kind in kinds
    )


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from dill import loads",
        "eval(text)",
        "torch.load(path)",
        "yaml.load(text, Loader=yaml.Loader)",
        "run(command, shell=True)",
        "load(name, trust_remote_code=True)",
    ],
)
def test_the_rule_sees(line):
    assert len(list(dangers(ast.parse(line)))) == 1


def test_the_rule_lets_a_models_eval_mode_through():
    assert list(dangers(ast.parse("model.eval()\nre.compile('a')\nyaml.safe_load(text)"))) == []


def test_nothing_runs_foreign_code(sources):
    found = [
        f"{s.name}:{line} {what}"
        for s in sources
        if s.name not in MAY_RUN_CODE
        for line, what in dangers(s.tree)
    ]
    assert found == []


def test_no_except_swallows_everything(sources):
    found = [
        f"{source.name}:{node.lineno}"
        for source in sources
        if source.name not in MAY_CATCH_EVERYTHING
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    ]
    assert found == []


def test_the_dashboards_page_makes_nothing_of_text():
    scripts = sorted(STATIC.glob("*.js"))
    assert len(scripts) > 20
    found = [
        f"{script.name}: {word}"
        for script in scripts
        for word in BANNED_IN_PAGES
        if word in script.read_text(encoding="utf-8")
    ]
    assert found == []
