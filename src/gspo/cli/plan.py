"""`gspo plan`: memory and time of a run before it is started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gspo.cli.output import JsonFlag, print_json, print_table, stdout_kept_clean

if TYPE_CHECKING:
    from gspo.plan.memory import MemoryPlan
    from gspo.plan.report import PlanReport

GIB, MIB = 2**30, 2**20


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan)


def plan(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe's name or YAML file, a run folder, a model folder, a config.json, or a model's name in the local Hugging Face cache."
        ),
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as rollout.max_tokens=4096.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="A device to fit on, as h100, or this-machine.")
    ] = None,
    devices: Annotated[int, typer.Option(help="Devices that share the model, by FSDP2.")] = 1,
    lora: Annotated[
        int | None, typer.Option(help="Rank of LoRA; without it every parameter is trained.")
    ] = None,
    lora_targets: Annotated[
        str | None,
        typer.Option(help="Linear maps that get an adapter, as q_proj,v_proj; all of the layers."),
    ] = None,
    base_bits: Annotated[
        int | None, typer.Option(help="4 or 8: a quantised base under the adapters.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="A run folder of this recipe, to take the times from.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Say what a run needs, and whether it fits.

    Bytes by part with their formulas, on one device or several; time by a roofline or from a run;
    what to change where it does not fit. Reads configurations and headers: no weights are loaded.
    """
    with stdout_kept_clean():
        report = _report(
            recipe, overrides or [], device, devices, (lora, lora_targets, base_bits), run
        )
    if json:
        from gspo.plan.report import as_json

        print_json(as_json(report))
        return
    _print(report)


def _report(
    target: str,
    overrides: list[str],
    device: str | None,
    devices: int,
    method: tuple[int | None, str | None, int | None],
    run: Path | None,
) -> PlanReport:
    from gspo.plan.measured import measured
    from gspo.plan.memory import plan_memory
    from gspo.plan.method import Method
    from gspo.plan.report import PlanReport
    from gspo.plan.source import find_source
    from gspo.plan.speed import beside, step_time
    from gspo.plan.suggest import suggestions

    rank, targets, bits = method
    names = tuple(name.strip() for name in targets.split(",")) if targets else ()
    source = find_source(target, overrides)
    dtype_given = any(text.startswith("model.dtype=") for text in overrides)
    memory = plan_memory(
        source.recipe,
        device=device,
        devices=devices,
        method=Method(lora_rank=rank, lora_targets=names, base_bits=bits),
        precision="mixed" if source.from_model and not dtype_given else None,
    )
    time = None if device is None else step_time(memory)
    return PlanReport(
        target=target,
        memory=memory,
        suggestions=suggestions(memory),
        time=time,
        beside=None if time is None else beside(memory.setup, time),
        measured=None if run is None else measured(run, source.recipe),
        files=source.files,
    )


def _print(report: PlanReport) -> None:
    memory = report.memory
    _print_model(report)
    print()
    print_memory(memory)
    _print_fit(report)
    _print_time(report)
    for note in memory.notes:
        print(f"note: {note}")


def print_memory(memory: MemoryPlan) -> None:
    """Every part, the stages and the total."""
    each = "" if memory.setup.devices == 1 else " on each device"
    rows = [(part.name, size_text(part.bytes)) for part in memory.details]
    width = max(len(name) for name, _ in rows)
    for (name, size), part in zip(rows, memory.details, strict=True):
        print(f"{name:<{width}}  {size:>12}  {part.formula}")
    print(f"{'total':<{width}}  {size_text(memory.total):>12}  fullest while: {memory.peak}{each}")
    stages = ", ".join(f"{stage} {size_text(size)}" for stage, size in memory.stages.items())
    print(f"{'stages':<{width}}  {stages}")


def _print_model(report: PlanReport) -> None:
    setup = report.memory.setup
    shape, work = setup.shape, setup.workload
    active = "" if shape.num_active == shape.num_parameters else f", {shape.num_active:,} active"
    print(f"model       {shape.kind}, {shape.num_parameters:,} parameters{active}")
    if report.files is not None:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.files.dtypes.items())
        missing = report.files.missing
        gone = f"; of the index {len(missing)} are missing, as {missing[0]}" if missing else ""
        print(f"files       {report.files.num_files} with {kinds}{gone}")
    print(f"training    {setup.method.name}, {setup.precision.name}, {setup.devices} device(s)")
    print(
        f"step        {work.prompts} prompts of {work.prompt_tokens:,} x {work.group} responses of {work.response_tokens:,} tokens; {work.microbatch:,} tokens a forward, {work.rows} rows sampled at once"
    )


def _print_fit(report: PlanReport) -> None:
    memory, device = report.memory, report.memory.request.device
    if device is None or memory.fits is None:
        print("\nfits        unknown, and no times: name a --device, as h100 or this-machine")
        return
    room = f"{size_text(memory.total)} of {size_text(device.usable)} usable on {device.name} ({size_text(device.memory)})"
    print(f"\nfits        {'yes' if memory.fits else 'NO'}: {room}")
    if not report.suggestions:
        return
    print("\nWhat to change, one on top of the other")
    for each in report.suggestions:
        fits = ", fits" if each.fits else ""
        if each.alone:
            print(f"or {each.text}: {size_text(each.total)} on each{fits}")
        else:
            saved, left = size_text(each.saves), size_text(each.total)
            print(f"saves {saved:>10}, leaves {left:>10}{fits}: {each.text}")


def _print_time(report: PlanReport) -> None:
    time, beside, measured = report.time, report.beside, report.measured
    if time is not None and beside is not None:
        print("\nAt least, by the device's speed and bandwidth (a roofline: no run does better)")
        rows = [
            ("prompts", time.prefill_s), ("decoding", time.decode_s), ("scoring", time.score_s),
            ("update", time.update_s), ("step", time.step_s),
        ]  # fmt: skip
        print_table(("part", "seconds"), rows)
        print(
            f"sampled: {time.tokens_per_s:,.0f} tokens/s, bound by {time.decode_bound}; generation is {beside.generation:.0%} of the step"
        )
        print(
            f"the same tokens: SFT {beside.sft_s:.4g} s, DPO {beside.dpo:.2f} x that, this run {beside.gspo:.2f} x"
        )
    if measured is not None:
        print(f"\nMeasured in {measured.run}, medians of {measured.num_steps} steps")
        print_table(("part", "seconds"), [*measured.seconds.items(), ("step", measured.step_s)])
        if measured.sampled_per_s is not None:
            print(f"sampled: {measured.sampled_per_s:,.0f} tokens/s")
        if measured.peak_bytes is not None:
            print(f"resident: at most {size_text(measured.peak_bytes)}")
        if measured.different:
            print(f"the run's own {', '.join(measured.different)} are not those planned here")


def size_text(size: int) -> str:
    """Bytes for people.

    >>> size_text(3 * 2**30)
    '3.00 GiB'
    """
    if abs(size) >= GIB:
        return f"{size / GIB:,.2f} GiB"
    return f"{size / MIB:,.1f} MiB"
