"""`gspo lab`: the article's experiments, one command each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from gspo.cli.output import JsonFlag, print_json, print_table, stdout_kept_clean
from gspo.settings import GRPO, PAPER_CLIP, ClipRange

if TYPE_CHECKING:
    from gspo.lab.clip_range import Bands, Noise
    from gspo.lab.clip_range import Row as ClipRangeRow
    from gspo.lab.gradient import Row as GradientRow
    from gspo.lab.noise import Row as NoiseRow

Value = TypeVar("Value", int, float, str)

SAMPLING = "0.5,0.4,0.9,0.04"
CURRENT = "0.58,0.3,0.9,0.05"

Sigmas = Annotated[
    list[float] | None,
    typer.Option("--sigma", help="Spread of the noise in nats; may be given again."),
]
Lengths = Annotated[
    list[int] | None,
    typer.Option("--length", help="Tokens of a response; may be given again."),
]
Objectives = Annotated[
    list[str] | None, typer.Option("--objective", help="Objective; may be given again.")
]
Picture = Annotated[
    Path | None, typer.Option("--picture", help="Also draw it, as an HTML page in this file.")
]


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    lab = typer.Typer(help="Experiments of the article.", no_args_is_help=True)
    lab.callback()(lambda: None)
    lab.command("worked")(worked)
    lab.command("clip-range")(clip_range)
    lab.command("gradient")(gradient)
    lab.command("noise")(noise)
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


def clip_range(
    length: Lengths = None,
    sigma: Sigmas = None,
    bias: Annotated[
        float, typer.Option(help="What moves every token's log-ratio alike, in nats.")
    ] = 0.0,
    outliers: Annotated[
        int, typer.Option(help="Tokens of each response whose probability goes from 0.001 to 0.1.")
    ] = 0,
    clip: Annotated[
        str, typer.Option(help="LOW,HIGH of the fixed range, distances from ratio 1.")
    ] = f"{PAPER_CLIP.low},{PAPER_CLIP.high}",
    length_fair: Annotated[
        str, typer.Option(help="LOW,HIGH of the length-fair band, in nats times sqrt(token).")
    ] = "0.144,0.144",
    responses: Annotated[int, typer.Option(help="Simulated responses of each length.")] = 20_000,
    picture: Picture = None,
    json: JsonFlag = False,
) -> None:
    """Token noise against clip ranges, by length.

    The spread of log s falls as 1/sqrt(length): what a fixed range and a length-fair band leave
    outside, simulated and in closed form.
    """
    _check_picture(picture)
    from gspo.lab import clip_range as lab
    from gspo.lab.report import clip_range_json
    from gspo.settings import LengthFairClip

    (low, high), (fair_low, fair_high) = _pair("--clip", clip), _pair("--length-fair", length_fair)
    bands = lab.Bands(
        fixed=ClipRange(low=low, high=high),
        length_fair=LengthFairClip(low=fair_low, high=fair_high),
    )
    lengths = _each(length, lab.LENGTHS)
    noises = [
        lab.Noise(sigma=value, bias=bias, outliers=outliers) for value in _each(sigma, [lab.SIGMA])
    ]
    with stdout_kept_clean(), _progress("clip-range", len(lengths) * len(noises)) as on_row:
        rows = lab.clip_range_rows(lengths, noises, bands, num_responses=responses, on_row=on_row)
    if picture is not None:
        from gspo.lab.clip_range_picture import draw

        _write(picture, draw(rows, bands))
    if json:
        print_json(
            {
                "rows": [clip_range_json(row) for row in rows],
                "responses": responses,
                "clip": {
                    "token": [bands.token.low, bands.token.high],
                    "fixed": [low, high],
                    "length_fair": [fair_low, fair_high],
                },
                "outlier": {
                    "from": lab.OUTLIER[0],
                    "to": lab.OUTLIER[1],
                    "tokens": lab.ARTICLE_TOKENS,
                    "log_s_shift": lab.outlier_shift(),
                },
                "picture": None if picture is None else str(picture),
            }
        )
    else:
        _print_clip_range(rows, noises, bands, responses)


def gradient(
    length: Annotated[int, typer.Option(help="Tokens of a response.")] = 128,
    sigma: Sigmas = None,
    objective: Objectives = None,
    picture: Picture = None,
    json: JsonFlag = False,
) -> None:
    """Rescaled, or rotated?

    The gradient of one response with noise on its old log-probs, against the same without:
    cosine and length, for gspo and grpo or the objectives named.
    """
    _check_picture(picture)
    from gspo.lab import gradient as lab
    from gspo.lab.report import gradient_json

    names, sigmas = _each(objective, ["gspo", "grpo"]), _each(sigma, lab.SIGMAS)
    with stdout_kept_clean():
        rows = lab.gradient_rows(length, sigmas, names)
    if picture is not None:
        from gspo.lab.gradient_picture import draw

        _write(picture, draw(rows))
    if json:
        print_json(
            {
                "rows": [gradient_json(row) for row in rows],
                "responses": lab.NUM_RESPONSES,
                "picture": None if picture is None else str(picture),
            }
        )
    else:
        _print_gradient(rows)


def noise(
    length: Lengths = None,
    sigma: Sigmas = None,
    objective: Objectives = None,
    seeds: Annotated[int, typer.Option(help="Seeds, from 0 on.")] = 20,
    std: Annotated[
        Literal["unbiased", "biased"], typer.Option(help="Estimator that divides advantages.")
    ] = "biased",
    draw: Annotated[
        Literal["without", "with"], typer.Option(help="Prompts of a step: with replacement or not.")
    ] = "with",
    mix: Annotated[
        Literal["shuffled", "even"],
        typer.Option(help="A minibatch: random responses, or two of each prompt."),
    ] = "shuffled",
    initial: Annotated[float, typer.Option(help="Spread of the logits at the start.")] = 0.0,
    picture: Picture = None,
    json: JsonFlag = False,
) -> None:
    """The toy: every objective with noise on the behaviour log-probs.

    64 prompts, target strings over 6 symbols, 100 steps of 4 minibatches, plain SGD; 32 and 128
    tokens unless told otherwise. Differences to GRPO are on the same seeds.
    """
    _check_picture(picture)
    from gspo.lab import noise as lab
    from gspo.lab.report import noise_json
    from gspo.lab.toy import Toy
    from gspo.objectives import OBJECTIVES

    lengths, names = _each(length, lab.LENGTHS), _each(objective, list(OBJECTIVES))
    sigmas = _each(sigma, lab.SIGMAS)
    toys = [Toy(length=tokens, std=std, draw=draw, mix=mix, initial=initial) for tokens in lengths]
    parts = lab.noise_parts(toys, sigmas, names, seeds)
    with stdout_kept_clean(), _progress("noise", len(parts)) as on_part:
        rows = lab.noise_rows(parts, on_part)
    if picture is not None:
        from gspo.lab.noise_picture import draw as draw_noise

        _write(picture, draw_noise(rows))
    if json:
        print_json(
            {
                "rows": [noise_json(row) for row in rows],
                "std": std,
                "draw": draw,
                "mix": mix,
                "initial": initial,
                "picture": None if picture is None else str(picture),
            }
        )
    else:
        _print_noise(rows)


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[], None]]:
    """Moves a progress bar on by one at every call."""
    from gspo.recorders.console import ConsoleRecorder

    recorder = ConsoleRecorder(0)
    try:
        with recorder.progress(f"lab {name}", total) as advance:
            yield lambda: advance(1)
    finally:
        recorder.close()


def _each(given: Sequence[Value] | None, otherwise: Sequence[Value]) -> list[Value]:
    """What was given, or the defaults; each once."""
    return list(dict.fromkeys(given or otherwise))


def _check_picture(picture: Path | None) -> None:
    """Before the work, not after it."""
    if picture is None:
        return
    if not picture.parent.is_dir():
        reason = f"there is no folder {picture.parent}; make it first"
        raise typer.BadParameter(reason, param_hint="--picture")
    if picture.is_dir():
        reason = f"{picture} is a folder; wanted a file, as {picture / 'lab.html'}"
        raise typer.BadParameter(reason, param_hint="--picture")


def _write(picture: Path, text: str) -> None:
    from gspo.recorders.durable import write_text

    write_text(picture, text)


def _pair(option: str, text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r}; wanted LOW,HIGH, as 3e-4,4e-4", param_hint=option
        ) from error
    return low, high


def _print_clip_range(
    rows: Sequence[ClipRangeRow], noises: Sequence[Noise], bands: Bands, responses: int
) -> None:
    from gspo.lab import clip_range as lab
    from gspo.lab.report import clip_range_table

    print(
        f"{responses:,} responses a length; each token's log-ratio has independent noise. "
        "In brackets: the closed form.\n"
    )
    for noise in noises:
        print(f"sigma {noise.sigma:g}, bias {noise.bias:g}, outlier tokens {noise.outliers}")
        print_table(*clip_range_table([row for row in rows if row.noise == noise]))
        print()
    print(
        f"outside: share out of ({bands.token.low:g}, {bands.token.high:g}) for tokens, "
        f"({bands.fixed.low:g}, {bands.fixed.high:g}) for responses;\nlength fair: log s out of "
        f"[-{bands.length_fair.low:g}, {bands.length_fair.high:g}] / sqrt(length)."
    )
    print(
        "One token that goes from {:g} to {:g} moves log s of ".format(*lab.OUTLIER)
        + f"{lab.ARTICLE_TOKENS} tokens by {lab.outlier_shift():.3f}."
    )


def _print_gradient(rows: Sequence[GradientRow]) -> None:
    from gspo.lab.report import gradient_table

    print(
        f"Responses of {rows[0].length} tokens. Their gradient with noise on the old log-probs, "
        "against the one without.\n"
    )
    print_table(*gradient_table(rows))
    print(
        "\ncosine, length (clean = 1): mean over responses that keep a gradient. limit: the cosine "
        "of a very long\nresponse in closed form. cut: share of responses (tokens, for token "
        "objectives) that the clip stopped."
    )


def _print_noise(rows: Sequence[NoiseRow]) -> None:
    from gspo.lab.report import noise_table

    print_table(*noise_table(rows))
    print(
        f"\naccuracy: expected share of matching tokens, mean over {rows[0].seeds} seeds; it starts "
        "near 0.167. less grpo: on the\nsame seeds. cut: share of responses (tokens, for token "
        "objectives) that the clip stops in minibatches 2 to 4;\nof all: in 1 to 4."
    )


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
