"""TensorBoard's event files, written with its own messages. Needs neither torch nor TensorFlow.

`tensorboard --logdir runs` shows all runs. TensorBoard keeps numbers as float32.
"""

# The package is optional, and protobuf makes its classes while it is imported:
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from gspo.recorders.durable import new_folder
from gspo.recorders.mirror import Bins, Entry, Target
from gspo.types import Alarm

FILE_VERSION = "brain.Event:2"


class TensorBoardFiles:
    """One event file. It is written straight, without TensorBoard's own thread: a full disk is then
    an error of the step that met it."""

    def __init__(self, target: Target) -> None:
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        if target.folder.exists():
            shutil.rmtree(target.folder)
        new_folder(target.folder)
        path = target.folder / f"events.out.tfevents.{time.time_ns()}.gspo"
        self._writer = RecordWriter(path.open("wb"))
        self._write(time.time(), file_version=FILE_VERSION)
        # A TensorBoard that is open since before a resume forgets what it had read.
        self._write(time.time(), step=0, session_log=SessionLog(status=SessionLog.START))
        self._writer.flush()

    def add(self, entries: Sequence[Entry]) -> None:
        """Handed to the system when this returns."""
        for entry in entries:
            self._write(entry.time_s, step=entry.step, summary=_summary(entry))
        self._writer.flush()

    def alarm(self, alarm: Alarm, time_s: float) -> None:
        """A text under the tag of its rule."""
        from tensorboard.plugins.text.summary_v2 import text_pb

        text = (
            f"{alarm.cause} Value {alarm.value}, threshold {alarm.threshold}. Try: {alarm.advice}"
        )
        self._write(time_s, step=alarm.step, summary=text_pb(f"alarm/{alarm.rule}", text))
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _write(self, time_s: float, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._writer.write(Event(wall_time=time_s, **fields).SerializeToString())


def _summary(entry: Entry) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=n, simple_value=v) for n, v in entry.numbers.items()]
    values += [Summary.Value(tag=n, histo=_histogram(b)) for n, b in entry.histograms.items()]
    return Summary(value=values)


def _histogram(bins: Bins) -> Any:
    """Its bins as they are; the sums, which no view of a histogram shows, from their middles."""
    from tensorboard.compat.proto.histogram_pb2 import HistogramProto

    middles = [(low + high) / 2 for low, high in pairwise(bins.edges)]
    pairs = list(zip(middles, bins.counts, strict=True))
    return HistogramProto(
        min=bins.edges[0],
        max=bins.edges[-1],
        num=sum(bins.counts),
        sum=sum(x * n for x, n in pairs),
        sum_squares=sum(x * x * n for x, n in pairs),
        bucket_limit=bins.edges[1:],
        bucket=bins.counts,
    )
