"""The memory of a run, part by part, before it is started: `gspo.plan_memory`.

A step goes through stages that do not hold the same: the engine's copy, its cache and its logits
are gone when the update begins, gradients and activations when it ends. The total is the fullest
stage; `not_at_once` is what the parts add up to beyond it, as a negative part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gspo.errors import RecipeError
from gspo.plan.devices import Device, device_named
from gspo.plan.method import PRECISIONS, Method, PrecisionName
from gspo.plan.overhead import overhead_parts
from gspo.plan.parts import Part, Setup, Stage, stage_bytes
from gspo.plan.sampling import sampling_parts
from gspo.plan.shape import ModelShape, shape_of
from gspo.plan.source import config_of, prompt_tokens_of
from gspo.plan.training import training_parts
from gspo.plan.workload import workload_of
from gspo.recipes.schema import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to plan. precision None: the recipe's model.dtype. prompt_tokens None: as the recipe
    tells. device None: the trainer as it runs here, on the processor, or with mixed precision an
    accelerator without a name."""

    recipe: Recipe
    shape: ModelShape
    method: Method = field(default_factory=Method)
    precision: PrecisionName | None = None
    device: Device | None = None
    devices: int = 1
    prompt_tokens: int | None = None

    @property
    def on_cpu(self) -> bool:
        """The update runs on a processor, in its main memory."""
        if self.device is None:
            return self.precision != "mixed"
        return self.device.is_cpu


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Bytes on each device. details: every part with its formula, adding up to `total`. notes: what
    was assumed."""

    request: Request
    setup: Setup
    details: tuple[Part, ...]
    stages: Mapping[Stage, int]
    notes: tuple[str, ...]

    @property
    def parts(self) -> dict[str, int]:
        """Name to bytes; one may be negative, `not_at_once`."""
        return {part.name: part.bytes for part in self.details}

    @property
    def peak(self) -> Stage:
        """The fullest stage."""
        return max(self.stages, key=lambda stage: self.stages[stage])

    @property
    def total(self) -> int:
        """Most bytes at one time."""
        return self.stages[self.peak]

    @property
    def fits(self) -> bool | None:
        """On the device; None where none was named."""
        device = self.request.device
        return None if device is None else self.total <= device.usable


def plan_memory(
    recipe: Recipe,
    *,
    device: str | None = None,
    devices: int = 1,
    method: Method | None = None,
    precision: PrecisionName | None = None,
    prompt_tokens: int | None = None,
) -> MemoryPlan:
    """The memory of a training run with this recipe.

    device: a name in `gspo.plan.devices`, or this-machine. devices: how many share the model.
    precision: that of the recipe's model.dtype, or "mixed". prompt_tokens: of the longest prompt.

    Raises RecipeError for a device or method that is not known, DataError for a model that is not
    there.
    """
    if devices < 1:
        raise RecipeError(f"{devices} devices were asked for; wanted at least 1")
    request = Request(
        recipe=recipe,
        shape=shape_of(config_of(recipe)),
        method=method or Method(),
        precision=precision,
        device=None if device is None else device_named(device),
        devices=devices,
        prompt_tokens=prompt_tokens,
    )
    return plan(request)


def plan(request: Request) -> MemoryPlan:
    """The parts of what is asked."""
    setup, note = _setup(request)
    parts = [*training_parts(setup), *sampling_parts(setup)]
    parts += overhead_parts(setup, parts)
    stages = stage_bytes(parts)
    surplus = max(stages.values()) - sum(part.bytes for part in parts)
    peak = max(stages, key=lambda stage: stages[stage])
    told = f"what is not there in the fullest stage, {peak}"
    details = [*parts, Part("not_at_once", surplus, told)]
    return MemoryPlan(
        request=request,
        setup=setup,
        details=tuple(details),
        stages=stages,
        notes=() if note is None else (note,),
    )


def _setup(request: Request) -> tuple[Setup, str | None]:
    recipe, shape = request.recipe, request.shape
    precision = PRECISIONS[request.precision or recipe.model.dtype]
    tokens, note = request.prompt_tokens, None
    if tokens is None:
        tokens, note = prompt_tokens_of(recipe, shape.context)
    workload = workload_of(
        recipe,
        shape,
        tokens,
        weight_bytes=shape.num_parameters * precision.weight,
        on_cpu=request.on_cpu,
        devices=request.devices,
    )
    return Setup(
        shape=shape,
        method=request.method,
        precision=precision,
        workload=workload,
        devices=request.devices,
        on_cpu=request.on_cpu,
        products=recipe.trainer.dtype == "bfloat16" and precision.compute == 4,
        reference=recipe.objective.kl is not None,
        engine_rounds=recipe.engine.dtype == "bfloat16" and precision.compute == 4,
    ), note


def with_recipe(request: Request, section: str, **settings: object) -> Request:
    """The same with other settings in one section of the recipe."""
    changed = getattr(request.recipe, section).model_copy(update=settings)
    return replace(request, recipe=request.recipe.model_copy(update={section: changed}))
