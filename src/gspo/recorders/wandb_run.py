"""Weights & Biases: offline files inside the run folder, or online where WANDB_MODE says so.

It never asks for a login. `wandb sync runs/NAME/wandb/offline-run-*` sends an offline run later.
"""

# The package is optional:
# pyright: reportMissingImports=false

from __future__ import annotations

import netrc
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

import numpy as np

from gspo.errors import RecipeError
from gspo.recorders.mirror import Entry, Target
from gspo.types import Alarm

DEFAULT_SERVER = "https://api.wandb.ai"
KEYS = ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE")
Mode = Literal["offline", "online", "disabled"]
MODES: tuple[Mode, ...] = ("offline", "online", "disabled")
PROJECT = "gspo"
TITLE_CHARS = 63  # the service takes fewer than 64
WAIT_S = 0.001  # between alerts of one title: none is held back


class WandbRun:
    """One run of the service; a resume is the same run again."""

    def __init__(self, target: Target) -> None:
        mode = _mode()
        self._online = mode == "online"
        if not self._online:
            _remove_offline_parts(target)
        # Read while the package is imported: it would report its own errors to its makers.
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb
        from wandb.sdk.mailbox import HandleAbandonedError, MailboxClosedError

        self._histogram = wandb.Histogram
        self._opened_s = time.time()
        start = partial(
            wandb.init,
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=target.name,
            id=target.id,
            resume="allow",
            dir=target.folder.parent,  # the package adds the folder "wandb"
            mode=mode,
            config=dict(target.recipe),
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True),
        )
        gone = (HandleAbandonedError, MailboxClosedError, ConnectionError)
        try:
            self._run = start()
        except gone:  # the package's process, left by an earlier run, has ended
            with suppress(*gone):
                wandb.teardown()
            self._run = start()

    def add(self, entries: Sequence[Entry]) -> None:
        """A row a step; W&B joins rows of one step, and drops steps that it has."""
        for entry in entries:
            histograms = {
                name: self._histogram(np_histogram=(np.array(bins.counts), np.array(bins.edges)))
                for name, bins in entry.histograms.items()
            }
            row = {**entry.numbers, **histograms, "_timestamp": entry.time_s}
            self._run.log(row, step=entry.step)

    def alarm(self, alarm: Alarm, time_s: float) -> None:
        """An alert. Online, those of before a resume were sent then."""
        if self._online and time_s < self._opened_s:
            return
        text = f"step {alarm.step}: {alarm.cause} Value {alarm.value}, threshold {alarm.threshold}. Try: {alarm.advice}"
        self._run.alert(alarm.rule[:TITLE_CHARS], text, level="WARN", wait_duration=WAIT_S)

    def close(self) -> None:
        """Ends the package's process."""
        self._run.finish()


def _mode() -> Mode:
    mode = os.environ.get("WANDB_MODE", "offline")
    if mode not in MODES:
        raise RecipeError(f"WANDB_MODE is {mode!r}; wanted one of {', '.join(MODES)}")
    if mode == "online" and not _has_key():
        raise RecipeError(
            f"WANDB_MODE is {mode}, but there is no key: run `wandb login` or set {KEYS[0]}, or "
            "leave WANDB_MODE out for offline files"
        )
    return mode


def _has_key() -> bool:
    if any(os.environ.get(key) for key in KEYS):
        return True
    host = urlsplit(os.environ.get("WANDB_BASE_URL", DEFAULT_SERVER)).hostname or ""
    try:
        return netrc.netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False


def _remove_offline_parts(target: Target) -> None:
    """The parts of this run from before a resume: their steps are written again."""
    for part in target.folder.glob(f"offline-run-*-{target.id}"):
        shutil.rmtree(part)
