"""TRL's settings in a file: `GRPOConfig(...)` in Python, which is parsed and never run, or YAML.

Around the call, `GRPOTrainer(...)`, `load_dataset(...)` and `from_pretrained(...)` name model, data and
rewards; they become the keys that `trl grpo` has for them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gspo.errors import RecipeError
from gspo.recipes.importers.found import Found, Unreadable, text_of
from gspo.recipes.importers.python_changes import changes_after
from gspo.recipes.importers.python_values import UnreadableError, constants, value_of
from gspo.recipes.importers.report import NotCarried
from gspo.recipes.importers.rewards import OVERLONG, OVERLONG_ARGUMENTS
from gspo.recipes.yaml_text import read_yaml

CONFIG, TRAINER = "GRPOConfig", "GRPOTrainer"
OWN_DTYPE = (
    "not set: transformers 5 keeps the precision of the checkpoint, earlier ones float32, as here; set model.dtype "
    "if it was another"
)
#: The trainer's arguments in order, as far as anybody leaves out their names.
POSITIONS = ("model", "reward_funcs", "args", "train_dataset", "eval_dataset", "processing_class")
#: Arguments of the trainer that have no counterpart.
TRAINER_REASONS = {
    "eval_dataset": "set data.eval_path to held-out prompts",
    "processing_class": "the tokenizer is the model folder's own; model.tokenizer names another",
    "reward_processing_classes": "there is no reward model here",
    "callbacks": "no code of yours runs inside the loop here",
    "optimizers": "the optimizer is AdamW, with the settings of the section optimizer",
    "peft_config": "all weights are trained here, without adapters",
    "quantization_config": "weights are not quantised here",
    "tools": "there are no tools here: a response is one turn",
    "rollout_func": "the engine here is the trainer's own model",
    "environment_factory": "there are no environments here",
}


def read_trl(path: Path) -> Found:
    """Every key of the file. RecipeError: it is no Python with one `GRPOConfig`, and no mapping."""
    text = text_of(path)
    if path.suffix == ".py":
        return _PythonFile(text, path.name).read()
    if path.suffix not in (".yaml", ".yml"):
        raise RecipeError(
            f"{path} ends in neither .py nor .yaml; TRL's settings stand in one of them"
        )
    document = read_yaml(text, path.name)
    if not isinstance(document.values, dict):
        raise RecipeError(
            f"{path.name} holds {document.values!r}; wanted settings, as 'epsilon: 0.2'"
        )
    found = Found()
    for key, value in document.values.items():
        found.add(key, value, document.places[(key,)])
    return found


class _PythonFile:
    def __init__(self, text: str, name: str) -> None:
        self._file = name
        try:
            self._tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f" line {error.lineno}" if isinstance(error, SyntaxError) else ""
            raise RecipeError(f"{name}{line} is not Python: {error}") from error
        self._names = constants(self._tree)
        self._imported = dict(_imports(self._tree))
        self._found = Found()

    def read(self) -> Found:
        config = self._one_call(CONFIG)
        if config is None:
            raise RecipeError(
                f"{self._file} calls no {CONFIG}(...); that call holds TRL's settings"
            )
        self._refuse_later_changes(config)
        self._keywords(config)
        trainer = self._one_call(TRAINER)
        if trainer is not None:
            self._trainer(trainer)
        return self._found

    def _one_call(self, name: str) -> ast.Call | None:
        wanted = {ours for ours, theirs in self._imported.items() if theirs.endswith(f".{name}")}
        calls = [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Call) and _called(node) in {name, *wanted}
        ]
        if len(calls) > 1:
            lines = ", ".join(str(call.lineno) for call in calls)
            raise RecipeError(
                f"{self._file} calls {name} {len(calls)} times (lines {lines}); leave one call in it"
            )
        return calls[0] if calls else None

    def _refuse_later_changes(self, config: ast.Call) -> None:
        """`args.epsilon = 0.1` after the call would be missed."""
        for line, what in changes_after(self._tree, config, TRAINER):
            raise RecipeError(
                f"{self._file} line {line}: {what} after the call; write it into {CONFIG}(...)"
            )

    def _keywords(self, call: ast.Call) -> None:
        if call.args:
            raise RecipeError(
                f"{self._place(call.args[0])}: {CONFIG} has an argument without a name; write "
                "name=value"
            )
        for keyword in call.keywords:
            if keyword.arg is None:
                raise RecipeError(
                    f"{self._place(keyword.value)}: **{ast.unparse(keyword.value)} hides which "
                    "settings it holds; write them out"
                )
            self._add(keyword.arg, self._value(keyword.value), keyword.value)

    def _value(self, node: ast.expr) -> Any:
        try:
            return value_of(node, self._names)
        except UnreadableError as error:
            return Unreadable(ast.unparse(node), str(error))

    def _add(self, key: str, value: Any, node: ast.expr) -> None:
        self._found.add(key, value, self._place(node))

    def _place(self, node: ast.expr) -> str:
        return f"{self._file} line {node.lineno}"

    def _trainer(self, call: ast.Call) -> None:
        named = [(keyword.arg, keyword.value) for keyword in call.keywords]
        for name, value in [*zip(POSITIONS, call.args, strict=False), *named]:
            node = self._behind(value)
            match name:
                case "args":
                    pass
                case "model":
                    self._model(node)
                case "reward_funcs":
                    self._rewards(node)
                case "train_dataset":
                    self._data(node)
                case other:
                    why = TRAINER_REASONS.get(str(other), "an argument of the trainer itself")
                    text = ast.unparse(value)
                    self._found.lost.append(NotCarried(f"{TRAINER}({other})", text, why))

    def _behind(self, node: ast.expr) -> ast.expr:
        """What a name stands for, if the file says it once."""
        for _ in range(10):
            if not isinstance(node, ast.Name) or node.id not in self._names:
                break
            node = self._names[node.id]
        return node

    def _model(self, node: ast.expr) -> None:
        if isinstance(node, ast.Call) and _called(node) == "from_pretrained":
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            first = node.args[0] if node.args else given.pop("pretrained_model_name_or_path", node)
            if not {"dtype", "torch_dtype"} & set(given):
                self._found.lost.append(NotCarried("from_pretrained(dtype)", None, OWN_DTYPE))
            for name, value in given.items():
                if name in ("dtype", "torch_dtype"):
                    self._add("dtype", self._value(value), value)
                else:
                    why = "a model folder is loaded as it is here"
                    text = ast.unparse(value)
                    self._found.lost.append(NotCarried(f"from_pretrained({name})", text, why))
            node = first
        self._add("model_name_or_path", self._value(node), node)

    def _rewards(self, node: ast.expr) -> None:
        items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        self._add("reward_funcs", [self._reward(item) for item in items], node)

    def _reward(self, node: ast.expr) -> str:
        """As `trl grpo` names it: one of TRL's own, or module.function. One of this very file is
        named with the file, which is not run."""
        node = self._behind(node)
        made = node if isinstance(node, ast.Call) else None
        if made is not None:
            node = made.args[0] if _called(made) == "partial" and made.args else made.func
        if not isinstance(node, ast.Name | ast.Attribute):
            return f"{self._file}:reward"  # a lambda, say
        name = ast.unparse(node)
        module, _, rest = name.rpartition(".")
        origin = self._imported.get(name) or (
            f"{self._imported[module]}.{rest}" if module in self._imported else None
        )
        if origin is None:
            return f"{self._file}:{rest}"
        name = rest if origin.startswith("trl.") else origin
        return name if made is None else self._made(name, made)

    def _made(self, name: str, call: ast.Call) -> str:
        """A reward that a call makes: with its arguments where they are read, else they are lost."""
        if name == OVERLONG:
            given = dict(zip(OVERLONG_ARGUMENTS, call.args, strict=False))
            given |= {keyword.arg or "": keyword.value for keyword in call.keywords}
            values = [self._value(given[key]) for key in OVERLONG_ARGUMENTS if key in given]
            if len(values) == 2 and all(isinstance(value, int) for value in values):
                return f"{name}({values[0]}, {values[1]})"
        why = "arguments of a reward are not carried over; give them in the reward's own file"
        self._found.lost.append(NotCarried(f"reward_funcs: {name}", ast.unparse(call), why))
        return name

    def _data(self, node: ast.expr) -> None:
        place = node
        while not (isinstance(node, ast.Call) and _called(node) == "load_dataset"):
            inner = _inside(node)
            if inner is None:
                why = "only load_dataset(...) names data that can be read here"
                self._add("dataset_name", Unreadable(ast.unparse(place), why), place)
                return
            if isinstance(node, ast.Subscript):
                self._add("dataset_train_split", self._value(node.slice), node)
            else:
                why = "rows are taken as they are; data.columns names other columns"
                self._found.lost.append(NotCarried("train_dataset", f".{_called(node)}(...)", why))
            node = self._behind(inner)
        self._load_dataset(node)

    def _load_dataset(self, call: ast.Call) -> None:
        arguments = {**dict(zip(("path", "name"), call.args, strict=False))}
        arguments |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        files = arguments.pop("data_files", None)
        if files is not None:
            arguments["path"] = files
            arguments.pop("split", None)
        keys = {"path": "dataset_name", "name": "dataset_config", "split": "dataset_train_split"}
        for argument, node in arguments.items():
            if argument in keys:
                self._add(keys[argument], self._value(node), node)
            else:
                why = "no counterpart"
                self._found.lost.append(
                    NotCarried(f"load_dataset({argument})", ast.unparse(node), why)
                )


def _called(node: ast.expr) -> str:
    """The last name of what is called: `trl.GRPOConfig(...)` calls GRPOConfig."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
        case _:
            return ""


def _inside(node: ast.expr) -> ast.expr | None:
    """What a method is called on, or what is indexed."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner):
            return inner
        case _:
            return None


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Name in this file -> where it comes from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name
