"""`gspo lab`: the article's experiments, one command each."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from gspo.cli.output import JsonFlag, print_json, print_table
from gspo.settings import GRPO, PAPER_CLIP, ClipRange

SAMPLING = "0.5,0.4,0.9,0.04"
CURRENT = "0.58,0.3,0.9,0.05"


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    lab = typer.Typer(help="Experiments of the article.", no_args_is_help=True)
    lab.callback()(lambda: None)
    lab.command("worked")(worked)
    app.add_typer(lab, name="lab")


def worked(
    sampling: Annotated[
        str, typer.Option(help="Probabilities of the tokens under the policy that sampled them.")
    ] = SAMPLING,
    current: Annotated[
        str, typer.Option(help="Probabilities of the same tokens under the policy now.")
    ] = CURRENT,
    low: Annotated[float, typer.Option(help="GSPO's clip range below ratio 1.")] = PAPER_CLIP.low,
    high: Annotated[float, typer.Option(help="GSPO's clip range above ratio 1.")] = PAPER_CLIP.high,
    eps: Annotated[
        float, typer.Option(help="GRPO's clip range on both sides of ratio 1.")
    ] = GRPO().clip.low,
    json: JsonFlag = False,
) -> None:
    """The worked example: what GSPO and GRPO do with one response."""
    sampling_probs = _probabilities("--sampling", sampling)
    current_probs = _probabilities("--current", current)
    clip = ClipRange(low=low, high=high)

    from gspo.lab.worked import worked_example

    result = worked_example(sampling_probs, current_probs, gspo_clip=clip, grpo_eps=eps)
    if json:
        print_json(result)
    else:
        _print_worked(result, sampling_probs, current_probs, clip, eps)


def _probabilities(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r}; wanted numbers with commas between, as {SAMPLING}", param_hint=option
        ) from error


def _print_worked(
    result: dict[str, Any],
    sampling: list[float],
    current: list[float],
    clip: ClipRange,
    eps: float,
) -> None:
    ratios, s = result["token_ratios"], result["s"]
    print("One response. Weight: what multiplies the token's grad log pi; 0 where it is cut.\n")
    weights = [
        (f"{objective} A={sign}", result[objective][name]["weights"])
        for name, sign in (("positive", "+1"), ("negative", "-1"))
        for objective in ("grpo", "gspo")
    ]
    print_table(
        ("token", "sampling", "current", "ratio", *(title for title, _ in weights)),
        list(
            zip(
                range(1, len(ratios) + 1),
                sampling,
                current,
                ratios,
                *(values for _, values in weights),
                strict=True,
            )
        ),
    )
    print(f"\ns = exp(mean log ratio) = exp({math.log(s):.5f}) = {s:.4f}")
    print(f"gspo keeps s in [{1 - clip.low:.6g}, {1 + clip.high:.6g}]:", _cuts(result["gspo"]))
    print(f"grpo keeps each ratio in [{1 - eps:.6g}, {1 + eps:.6g}]:", _cuts(result["grpo"]))


def _cuts(result: dict[str, Any]) -> str:
    return ", ".join(
        f"A={sign} {_cut(result[name]['cut'])}"
        for name, sign in (("positive", "+1"), ("negative", "-1"))
    )


def _cut(cut: bool | list[int]) -> str:
    if isinstance(cut, bool):
        return "cuts the response" if cut else "keeps the response"
    return f"cuts token {', '.join(map(str, cut))}" if cut else "cuts no token"
