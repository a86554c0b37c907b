"""The services a run can be copied to: `record.to` of a recipe. A name is also that of the package,
of the extra that installs it, and of the folder inside the run folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

from gspo.errors import RecipeError
from gspo.recorders.mirror import Mirror, Service, Target
from gspo.recorders.reader import RUN_FILE, open_run


def _tensorboard(target: Target) -> Service:
    from gspo.recorders.tensorboard_files import TensorBoardFiles

    return TensorBoardFiles(target)


def _wandb(target: Target) -> Service:
    from gspo.recorders.wandb_run import WandbRun

    return WandbRun(target)


def _trackio(target: Target) -> Service:
    from gspo.recorders.trackio_store import TrackioStore

    return TrackioStore(target)


SERVICES: dict[str, Callable[[Target], Service]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "trackio": _trackio,
}


def require(names: Iterable[str]) -> None:
    """RecipeError for the first whose package is not installed. Imports none of them."""
    for name in names:
        spec = find_spec(name)
        if spec is None or spec.origin is None:  # no origin: a plain folder of that name
            raise RecipeError(
                f"record.to names {name}, but the package {name} is not installed: "
                f"pip install 'gspo[{name}]', or leave {name} out of record.to"
            )


def mirrors(names: Iterable[str], path: Path, failed: Callable[[str, str], None]) -> list[Mirror]:
    """One recorder a name, in front of a copy that holds what the run folder holds already.

    failed: called with name and reason when a service fails, at most once each.
    """
    run = open_run(path)
    found: list[Mirror] = []
    for name in names:
        target = Target(folder=path / name, name=run.name, id=_run_id(path), recipe=run.recipe)
        mirror = Mirror(
            lambda name=name, target=target: SERVICES[name](target),
            lambda reason, name=name: failed(name, reason),
        )
        mirror.catch_up(run.metrics(), run.alarms())
        found.append(mirror)
    return found


def _run_id(path: Path) -> str:
    """run.json is written once, at the start, with its time and digests."""
    return hashlib.sha256((path / RUN_FILE).read_bytes()).hexdigest()[:16]
