"""Run as a file by a fresh interpreter: starts the fork server without importing `gspo`.

The packages on the way to it stand here as empty shells, so that nothing of this library runs
but the few modules that the server names, and no folder of installed packages is on the path.
"""

import sys
from pathlib import Path
from types import ModuleType


def _serve() -> None:
    here = Path(__file__).resolve().parent
    folders = {
        "gspo": here.parent.parent,
        "gspo.verifiers": here.parent,
        "gspo.verifiers.sandbox": here,
    }
    for name, folder in folders.items():
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    from gspo.verifiers.sandbox.zygote import main

    main()


if __name__ == "__main__":
    _serve()
