"""What to change where a plan does not fit: each change planned anew, cheapest for the result first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gspo.plan.devices import DEVICES
from gspo.plan.memory import MemoryPlan, Request, plan, with_recipe
from gspo.plan.method import Method

SUGGESTED_RANK = 16
MOST_DEVICES = 64
#: From a request and its plan to another request and its words; None where there is nothing to change.
Change = Callable[[Request, MemoryPlan], "tuple[str, Request] | None"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """saves: bytes beside the row before. total: of the plan with this change and those before it;
    for other hardware with this change alone. alone: it does not build on the others."""

    text: str
    saves: int
    total: int
    fits: bool
    alone: bool


def suggestions(current: MemoryPlan) -> list[Suggestion]:
    """Settings one on top of the other, as far as it takes; then other hardware, for the plan as it
    is. Empty where it fits, or no device is named."""
    if current.fits is not False:
        return []
    return [*_settings(current), *_hardware(current)]


def _settings(current: MemoryPlan) -> Iterator[Suggestion]:
    """Changes that alter no number come first, those that train something else last. One that
    saves nothing waits: another stage may be the fullest after the next."""
    waiting: list[Change] = [_microbatch, _rows, _reference, _lora, _base_8, _base_4, _length]
    while not current.fits:
        found = _first_that_saves(waiting, current)
        if found is None:
            return
        change, text, after = found
        waiting.remove(change)
        saves = current.total - after.total
        yield Suggestion(text, saves, after.total, bool(after.fits), alone=False)
        current = after


def _first_that_saves(
    waiting: list[Change], current: MemoryPlan
) -> tuple[Change, str, MemoryPlan] | None:
    for change in waiting:
        changed = change(current.request, current)
        if changed is not None:
            text, request = changed
            after = plan(request)
            if after.total < current.total:
                return change, text, after
    return None


def _microbatch(request: Request, now: MemoryPlan) -> tuple[str, Request] | None:
    """The longest sequence alone: the smallest forward there is."""
    longest = now.setup.workload.longest
    if request.recipe.trainer.max_tokens_per_microbatch <= longest:
        return None
    text = f"trainer.max_tokens_per_microbatch={longest}: one response a forward, the same numbers"
    return text, with_recipe(request, "trainer", max_tokens_per_microbatch=longest)


def _rows(request: Request, now: MemoryPlan) -> tuple[str, Request] | None:
    rows, least = now.setup.workload.rows, request.recipe.rollout.group
    fewer = max(rows // 4, least)
    if fewer >= rows:
        return None
    text = f"engine.max_batch={fewer}: the same samples, more slowly"
    return text, with_recipe(request, "engine", max_batch=fewer)


def _reference(request: Request, now: MemoryPlan) -> tuple[str, Request] | None:
    if request.recipe.objective.kl is None:
        return None
    text = "objective.kl=null: no reference model, as the paper trains"
    return text, with_recipe(request, "objective", kl=None)


def _lora(request: Request, now: MemoryPlan) -> tuple[str, Request] | None:
    if request.method.lora_rank is not None:
        return None
    text = f"LoRA of rank {SUGGESTED_RANK} on all maps of the layers: trains adapters alone"
    return text, replace(request, method=Method(lora_rank=SUGGESTED_RANK))


def _base(request: Request, bits: int) -> tuple[str, Request] | None:
    method = request.method
    if method.lora_rank is None or (method.base_bits or 16) <= bits:
        return None
    text = f"a base of {bits} bits under the adapters: sampled and trained with rounded weights"
    return text, replace(request, method=replace(method, base_bits=bits))


def _base_8(request: Request, now: MemoryPlan) -> tuple[str, Request] | None:
    return _base(request, 8)


def _base_4(request: Request, now: MemoryPlan) -> tuple[str, Request] | None:
    return _base(request, 4)


def _length(request: Request, now: MemoryPlan) -> tuple[str, Request] | None:
    shorter = request.recipe.rollout.max_tokens // 2
    if not shorter:
        return None
    half = with_recipe(request, "rollout", max_tokens=shorter)
    longest = now.setup.workload.prompt_tokens + shorter
    budget = min(request.recipe.trainer.max_tokens_per_microbatch, max(longest, 1))
    half = with_recipe(half, "trainer", max_tokens_per_microbatch=budget)
    return f"rollout.max_tokens={shorter}: half as long, another task for what thinks longer", half


def _hardware(current: MemoryPlan) -> Iterator[Suggestion]:
    """The fewest of these devices that hold it, and the smallest single device that does."""
    request, device = current.request, current.request.device
    if device is None:
        return
    number = request.devices * 2
    while not device.is_cpu and number <= MOST_DEVICES:
        after = plan(replace(request, devices=number))
        if after.fits:
            saves = current.total - after.total
            yield Suggestion(
                f"{number} x {device.name}, sharded", saves, after.total, True, alone=True
            )
            break
        number *= 2
    for other in sorted(DEVICES.values(), key=lambda known: known.memory):
        after = plan(replace(request, device=other))
        if after.fits and other.memory > device.memory:
            saves = current.total - after.total
            each = "" if request.devices == 1 else f"{request.devices} x "
            yield Suggestion(f"{each}{other.name} instead", saves, after.total, True, alone=True)
            return
