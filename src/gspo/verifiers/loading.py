"""A verifier function named in a recipe or on the command line.

Only a string from there may come here: never one from data, a checkpoint or a model folder.
Loading runs the file.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from gspo.errors import RecipeError, nearest
from gspo.verifiers.contained import contained


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """The function, the file it came from and that file's SHA-256 (hex), for the record."""

    function: Callable[..., Any]
    path: Path
    sha256: str


def load_function(place: str) -> LoadedFunction:
    """`path/to/file.py:name` or `package.module:name`. RecipeError says what was looked for."""
    source, colon, name = place.rpartition(":")
    if not (source and colon and name):
        raise RecipeError(
            f"verifier function is {place!r}; wanted 'path/to/file.py:name' or 'package.module:name'"
        )
    is_file = source.endswith(".py")
    path = Path(source).resolve() if is_file else _module_file(source)
    if not path.is_file():
        raise RecipeError(f"verifier function {place!r}: there is no file {path}")
    code = path.read_bytes()
    sha256 = hashlib.sha256(code).hexdigest()
    module: ModuleType | None = None
    with contained() as caught:
        module = _run(path, code, sha256) if is_file else importlib.import_module(source)
    if module is None:
        raise RecipeError(
            f"verifier function {place!r}: running {path} failed: {caught.reason}"
        ) from caught.error
    function = getattr(module, name, None)
    if not callable(function):
        callables = [key for key, value in vars(module).items() if callable(value)]
        raise RecipeError(
            f"verifier function {place!r}: {path} has no function {name!r}; {nearest(name, callables)}"
        )
    return LoadedFunction(function, path, sha256)


def _module_file(module: str) -> Path:
    """The source file of a module that can be imported; finding a submodule imports its parents."""
    spec = None
    with contained() as caught:
        spec = importlib.util.find_spec(module)
    if spec is None or not spec.has_location or spec.origin is None:
        raise RecipeError(
            f"verifier function: found no source file of a module {module!r}{f' ({caught.reason})' if caught.error else ''}; give 'path/to/file.py:name' for a file that is not installed"
        )
    return Path(spec.origin)


class _Source(SourceLoader):
    """Runs the bytes that were hashed: no compiled file is read in their place, or left behind."""

    def __init__(self, path: Path, code: bytes) -> None:
        self._path, self._code = path, code

    def get_filename(self, fullname: str) -> str:
        return str(self._path)

    def get_data(self, path: str) -> bytes:
        return self._code


def _run(path: Path, code: bytes, sha256: str) -> ModuleType:
    """Run the file as a module. Named by file and content: two functions of it share the module."""
    name = f"gspo_verifier_{path.stem}_{sha256[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses look their module up while it runs
    whole = False
    try:
        _Source(path, code).exec_module(module)
        whole = True
    finally:
        if not whole:
            del sys.modules[name]
    return module
