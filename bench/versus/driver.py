"""One workload from start to rows: both workers, turn by turn, each repetition on a quiet machine."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from bench.versus.channel import ROOT, Worker
from bench.versus.conditions import NUM_THREADS
from bench.versus.inputs import write_inputs, write_model
from bench.versus.quiet import MAX_FOREIGN_CORES, MAX_TRIES, Sample, quietly, sample
from bench.versus.results import Row
from bench.versus.rows import main_value, rows_of
from bench.versus.summary import turns
from bench.versus.workloads import Workload

OUR_PYTHON = ROOT / ".venv" / "bin" / "python"
ENVIRONMENT = {
    "OMP_NUM_THREADS": str(NUM_THREADS),
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
GRADIENT_TOLERANCE = {"float32": 1e-5}  # relative; in bfloat16 the difference is only reported

Answer = dict[str, Any]


class GradientsDifferError(Exception):
    """The two sides do not compute the same thing."""


@dataclass
class Bench:
    """Where things lie, how often things run, and the worker that calibrates."""

    folder: Path
    peer_python: Path
    repetitions: int | None
    warmups: int
    settings: tuple[str, ...]
    calibrator: Worker = field(init=False)

    def __post_init__(self) -> None:
        command = [str(OUR_PYTHON), "-m", "bench.versus.calibrate", str(NUM_THREADS)]
        self.calibrator = Worker(command, self.folder / "calibrate.log", ENVIRONMENT)

    def model(self, workload: Workload) -> Path:
        """The folder of its weights, written once."""
        name = "".join(c if c.isalnum() else "-" for c in workload.shape.name)
        folder = self.folder / "models" / name
        if not folder.exists():
            write_model(workload.shape, folder)
        return folder


class Match:
    """Two workers on one workload."""

    def __init__(self, bench: Bench, workload: Workload, say: Callable[[str], None]) -> None:
        self.bench = bench
        self.workload = workload
        self.say = say
        self.repetitions = bench.repetitions or workload.repetitions
        self.folder = bench.folder / workload.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.model = bench.model(workload)
        self.inputs = self.folder / "inputs.json"
        write_inputs(workload, self.inputs)
        self.foreign: list[float] = []
        self.facts: Row = {}
        self.peer_versions: dict[str, str] = {}

    def rows(self) -> list[Row]:
        """Measures everything."""
        before = self._calibrate()
        if self.workload.kind == "memory":
            ours, peer, setting, screened = self._memory()
        else:
            ours, peer, setting, screened = self._times()
        after = self._calibrate()
        calibration = {name: (before[name] + after[name]) / 2 for name in before}
        facts = self.facts | {
            "peer_setting": setting,
            "peer_settings": screened,
            "repetitions": self.repetitions,
            "warmups": 0 if self.workload.kind == "memory" else self.bench.warmups,
            "foreign_cores": max(self.foreign),
            "quiet": max(self.foreign) <= MAX_FOREIGN_CORES,
            "measured": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        return rows_of(self.workload, ours, peer, calibration, facts)

    def _calibrate(self) -> Answer:
        """The machine's rates, while nothing else runs: they are what a roofline stands on."""
        calibrator = self.bench.calibrator
        return self._quietly(calibrator.pid, lambda: calibrator.ask({}))

    def _settings(self) -> tuple[str, ...]:
        return self.bench.settings or self.workload.peer_settings

    def _ours(self) -> Worker:
        command = [str(OUR_PYTHON), "-m", "bench.versus.ours", self.workload.name]
        worker = Worker(
            [*command, str(self.inputs), str(self.model)], self.folder / "ours.log", ENVIRONMENT
        )
        self.facts["engine_dtype"] = worker.ready["engine"]
        return worker

    def _peer(self, setting: str) -> Worker:
        command = [str(self.bench.peer_python), "-m", "bench.versus.peer", self.workload.name]
        folders = [str(self.inputs), str(self.model), str(self.folder / "output")]
        log = self.folder / f"peer-{setting}.log"
        worker = Worker([*command, setting, *folders], log, ENVIRONMENT)
        self.peer_versions = worker.ready["versions"]
        return worker

    def _times(self) -> tuple[list[Answer], list[Answer], str, dict[str, float]]:
        with self._ours() as ours:
            self._warm_up(ours, "ours")
            peer, setting, screened = self._best_peer()
            with peer:
                self._compare_gradients(setting)
                workers = {"ours": ours, "peer": peer}
                answers: dict[str, list[Answer]] = {"ours": [], "peer": []}
                for number, pair in enumerate(turns(self.repetitions), start=1):
                    for side in pair:
                        answers[side].append(self._run(workers[side], number))
                    one, other = (
                        abs(main_value(self.workload, answers[side][-1]))
                        for side in ("ours", "peer")
                    )
                    self.say(f"  {number}: ours {one:.4g}, peer {other:.4g}")
        return answers["ours"], answers["peer"], setting, screened

    def _best_peer(self) -> tuple[Worker, str, dict[str, float]]:
        """The peer in the setting that is best in one repetition, ready and warm."""
        best: tuple[Worker, str] | None = None
        screened: dict[str, float] = {}
        for setting in self._settings():
            worker = self._peer(setting)
            self._warm_up(worker, f"peer-{setting}")
            if len(self._settings()) == 1:
                return worker, setting, {}
            screened[setting] = main_value(self.workload, self._run(worker, 0))
            self.say(f"  peer, {setting}: {abs(screened[setting]):.4g}")
            if screened[setting] == min(screened.values()):
                if best is not None:
                    best[0].close()
                best = worker, setting
            else:
                worker.close()
        if best is None:
            raise ValueError(f"{self.workload.name} names no setting of the peer")
        return *best, {name: abs(value) for name, value in screened.items()}

    def _warm_up(self, worker: Worker, name: str) -> None:
        """Not counted; the first one leaves its gradients behind. Without warm-ups there are no
        gradients to compare."""
        for number in range(self.bench.warmups):
            wanted = number == 0 and self.workload.kind == "update"
            folder = str(self.folder / name) if wanted else None
            worker.ask({"repetition": 0, "gradients": folder})

    def _run(self, worker: Worker, repetition: int) -> Answer:
        return self._quietly(worker.pid, lambda: worker.ask({"repetition": repetition}))

    def _quietly(self, pid: int, measure: Callable[[], Answer], tries: int = MAX_TRIES) -> Answer:
        def disturbed(cores: float) -> None:
            self.say(f"  not quiet: other processes took {cores:.2f} cores")

        def watch() -> Sample:
            return sample([pid, os.getpid()])

        answer, foreign = quietly(measure, watch, tries=tries, disturbed=disturbed)
        self.foreign.append(foreign)
        return answer

    def _compare_gradients(self, setting: str) -> None:
        ours, peer = self.folder / "ours", self.folder / f"peer-{setting}"
        if not (ours.exists() and peer.exists()):
            return
        files = sorted(path.name for path in ours.glob("*.safetensors"))
        differences = [relative_difference(ours / name, peer / name) for name in files]
        self.facts["gradient_difference"] = max(differences)
        self.say(f"  gradients differ by {max(differences):.1e}, over {len(files)} minibatches")
        tolerance = GRADIENT_TOLERANCE.get(self.workload.precision)
        if tolerance is not None and max(differences) > tolerance:
            raise GradientsDifferError(
                f"{self.workload.name}: gradients differ by {max(differences):.1e}, allowed is "
                f"{tolerance:g}; the two sides do not compute the same thing, so no time counts"
            )

    def _memory(self) -> tuple[list[Answer], list[Answer], str, dict[str, float]]:
        """Each repetition in a process of its own: an allocator keeps what it once had."""
        screened: dict[str, list[Answer]] = {}
        for setting in self._settings():
            screened[setting] = [self._fresh(lambda s=setting: self._peer(s))]
            self.say(f"  peer, {setting}: {screened[setting][0]['peak_mb']:.0f} MB")
        setting = min(screened, key=lambda name: screened[name][0]["peak_mb"])
        peer, ours = screened[setting], []
        for number in range(self.repetitions):
            ours.append(self._fresh(self._ours))
            if number:
                peer.append(self._fresh(lambda: self._peer(setting)))
            self.say(f"  ours {ours[-1]['peak_mb']:.0f} MB, peer {peer[-1]['peak_mb']:.0f} MB")
        firsts = {name: answers[0]["peak_mb"] for name, answers in screened.items()}
        return ours, peer, setting, firsts

    def _fresh(self, start: Callable[[], Worker]) -> Answer:
        """Not repeated when disturbed: a second run would find what the first left behind, and
        other processes do not change the peak."""
        with start() as worker:
            return self._quietly(worker.pid, lambda: worker.ask({"memory": True}), tries=1)


def relative_difference(one: Path, other: Path) -> float:
    """|a - b| / |b| over all tensors of two files, which must hold the same names."""
    a, b = load_file(one), load_file(other)
    if a.keys() != b.keys():
        raise ValueError(f"gradients of other parameters: {sorted(a.keys() ^ b.keys())[:3]}")
    apart = sum(float((a[name] - b[name]).double().square().sum()) for name in b)
    size = sum(float(b[name].double().square().sum()) for name in b)
    return (apart / size) ** 0.5 if size else float(torch.inf)


def names(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """The wanted rows in the order of the table; all when none is named."""
    strange = sorted(set(wanted) - set(known))
    if strange:
        raise ValueError(f"no row {strange[0]!r}; there are: {', '.join(known)}")
    return [name for name in known if not wanted or name in wanted]
