"""A whole plan, memory, time and what to change, as one object for `--json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gspo.plan.devices import Device
from gspo.plan.headers import WeightFiles
from gspo.plan.measured import Measured
from gspo.plan.memory import MemoryPlan
from gspo.plan.speed import Beside, StepTime
from gspo.plan.suggest import Suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """time and beside: None without a device. measured: None without a run."""

    target: str
    memory: MemoryPlan
    suggestions: list[Suggestion]
    time: StepTime | None
    beside: Beside | None
    measured: Measured | None
    files: WeightFiles | None


def as_json(report: PlanReport) -> dict[str, Any]:
    """Bytes and seconds; `parts`, `total` and `fits` are stable."""
    planned, setup = report.memory, report.memory.setup
    shape, work = setup.shape, setup.workload
    return {
        "target": report.target,
        "parts": planned.parts,
        "total": planned.total,
        "fits": planned.fits,
        "formulas": {part.name: part.formula for part in planned.details},
        "stages": dict(planned.stages),
        "peak": planned.peak,
        "device": _device(planned.request.device),
        "devices": setup.devices,
        "method": setup.method.name,
        "precision": setup.precision.name,
        "num_parameters": shape.num_parameters,
        "num_active": shape.num_active,
        "num_trained": setup.method.num_trained(shape),
        "workload": asdict(work),
        "suggestions": [asdict(each) for each in report.suggestions],
        "time": _time(report.time),
        "beside": _beside(report.beside),
        "measured": None if report.measured is None else asdict(report.measured),
        "weight_files": None if report.files is None else asdict(report.files),
        "notes": list(planned.notes),
    }


def _device(device: Device | None) -> dict[str, Any] | None:
    return None if device is None else {**asdict(device), "usable": device.usable}


def _time(time: StepTime | None) -> dict[str, Any] | None:
    if time is None:
        return None
    return {**asdict(time), "rollout_s": time.rollout_s, "step_s": time.step_s}


def _beside(beside: Beside | None) -> dict[str, Any] | None:
    if beside is None:
        return None
    return {**asdict(beside), "dpo_over_sft": beside.dpo, "gspo_over_sft": beside.gspo}
