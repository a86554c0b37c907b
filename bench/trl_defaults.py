"""TRL's defaults, from the installed package: written to tests/importers/trl_defaults.json, and compared
with what src/gspo/recipes/importers/trl_keys.py says of them.

    python bench/trl_defaults.py            compare the file with the package (exit code 1 if they differ)
    python bench/trl_defaults.py --write    write the file anew

Needs trl, which is no dependency: run it with an environment that has it (bench/constraints-peer.txt).
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "tests" / "importers" / "trl_defaults.json"


def defaults() -> dict[str, Any]:
    """Field -> default of everything that `trl grpo` takes; a default made by a function is called."""
    from trl import GRPOConfig, ModelConfig
    from trl.scripts.grpo import GRPOScriptArguments

    found: dict[str, Any] = {}
    for config in (GRPOConfig, ModelConfig, GRPOScriptArguments):
        for field in dataclasses.fields(config):
            if field.init:
                found[field.name] = _default(field)
    return found


def _default(field: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        value = None
    value = getattr(value, "value", value)  # an enumeration stands for its word
    return (
        value
        if isinstance(value, bool | int | float | str | list | dict) or value is None
        else str(value)
    )


def main() -> None:
    """Compare, or write."""
    from importlib.metadata import version

    table = {"version": version("trl"), "defaults": dict(sorted(defaults().items()))}
    text = json.dumps(table, indent=1) + "\n"
    if "--write" in sys.argv:
        TABLE.write_text(text)
        print(f"written {TABLE}")
        return
    kept = json.loads(TABLE.read_text())
    new, old = table["defaults"], kept["defaults"]
    differ = sorted(
        key for key in new.keys() | old.keys() if new.get(key, "-") != old.get(key, "-")
    )
    print(
        f"trl {table['version']} against the table of {kept['version']}: {len(differ)} keys differ"
    )
    for key in differ:
        print(f"  {key}: {old.get(key, 'absent')!r} -> {new.get(key, 'absent')!r}")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
