"""Generation and update on one GPU with random weights, against plain transformers code.

    python bench/gpu.py [--groups 8] [--prompt 256] [--response 256] [--repetitions 3]
    python bench/gpu.py --device cpu --tiny

Needs torch and transformers. The other side is `model.generate` on prompts repeated for each
response, and the update a padded trainer makes: old log-probs of every minibatch, then forward and
backward of 8 padded sequences at a time over full logits. Both start from the same weights and
train on the same responses; their gradients are compared. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import types
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

MICROBATCH = 8  # sequences in one padded forward
MINIBATCHES = 4
SAMPLES = 8
LEARNING_RATE = 1e-6
CLIP_LOW, CLIP_HIGH = 3e-4, 4e-4  # arXiv 2507.18071, section 5.1
MAX_GRAD_NORM = 1.0
#: Relative, of the first minibatch's gradients, by the dtype of the weights.
TOLERANCE = {"float32": 1e-2, "bfloat16": 5e-2}  # float32 is multiplied in TF32 on a GPU
QWEN = {"hidden": 1024, "layers": 28, "heads": 16, "kv_heads": 8, "head_dim": 128}
TINY = {"hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 16}


class _Anything:
    """Stands for every type of a shape."""

    def __class_getitem__(cls, _: Any) -> Any:
        return Any


def allow_missing_jaxtyping() -> None:
    """The package names shapes with it, and nothing else: without it, shapes are not checked."""
    if find_spec("jaxtyping") is None:
        module = types.ModuleType("jaxtyping")
        module.__dict__["__getattr__"] = _shape_type
        sys.modules["jaxtyping"] = module


def _shape_type(name: str) -> type[_Anything]:
    if name.startswith("_"):  # what Python itself asks a module for
        raise AttributeError(name)
    return _Anything


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a size for trying this script")
    parser.add_argument("--dtype", choices=tuple(TOLERANCE), default="bfloat16")
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--response", type=int, default=256)
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    if given.tiny:
        given.groups, given.prompt, given.response, given.repetitions = 4, 8, 8, 1
    return given


def main() -> None:
    """Both sides in turn, or the reason why not."""
    given = arguments()
    import torch

    if given.device == "cuda" and not torch.cuda.is_available():
        print("no GPU that torch can use: nothing measured (--device cpu --tiny tries the script)")
        return
    allow_missing_jaxtyping()
    torch.set_float32_matmul_precision("highest" if given.device == "cpu" else "high")
    print(json.dumps(measure(given), indent=1))


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Seconds, ratios, peak memory and the difference of the gradients."""
    import torch

    from bench.versus.summary import compare, turns

    sides = _sides(given)
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if given.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "settings": vars(given),
    }
    difference = _gradient_difference(sides)
    if difference > TOLERANCE[given.dtype]:
        raise SystemExit(
            f"gradients differ by {difference:.1e}, allowed is {TOLERANCE[given.dtype]:g}:"
            " the two sides do not compute the same thing, so no time counts"
        )
    report["gradient_difference"] = difference
    for work in ("generate", "update"):
        seconds: dict[str, list[float]] = {"ours": [], "peer": []}
        peaks: dict[str, list[float]] = {"ours": [], "peer": []}
        for side in sides:
            timed(getattr(sides[side], work), given.device)
        for pair in turns(given.repetitions):
            for side in pair:
                took_s, peak_gb = timed(getattr(sides[side], work), given.device)
                seconds[side].append(took_s)
                peaks[side].append(peak_gb)
        done = compare(seconds["ours"], seconds["peer"], more_is_better=False)
        report[work] = {
            "ours_s": done.ours,
            "peer_s": done.peer,
            "ratio": done.ratio,
            "ratio_range": done.ratio_range,
            "peak_gb": {side: max(values) for side, values in peaks.items()},
        }
    return report


def timed(work: Callable[[], object], device: str) -> tuple[float, float]:
    """Seconds, and on a GPU the peak above what was allocated before, in GB."""
    import torch

    if device == "cpu":
        started = time.perf_counter()
        work()
        return time.perf_counter() - started, 0.0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    took_s = time.perf_counter() - started
    return took_s, (torch.cuda.max_memory_allocated() - before) / 1e9


def _sides(given: argparse.Namespace) -> dict[str, Any]:
    """Ours and the plain one, on one model's weights: the second is a copy."""
    from copy import deepcopy

    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from bench.versus.gpu_sides import Ours, Plain
    from bench.versus.shapes import Shape

    size = TINY if given.tiny else QWEN
    shape = Shape(
        name="gpu",
        family="qwen3",
        intermediate=3 * size["hidden"],
        vocab=512 if given.tiny else 151_936,
        **size,
    )
    torch.manual_seed(0)
    dtype = getattr(torch, given.dtype)
    model = Qwen3ForCausalLM(Qwen3Config(**shape.config())).to(given.device, dtype).eval()
    inputs = {
        "prompts": torch.randint(3, shape.vocab, (given.groups, given.prompt)).tolist(),
        "responses": torch.randint(
            3, shape.vocab, (given.groups * SAMPLES, given.response)
        ).tolist(),
        "rewards": [float(number % 2) for number in range(given.groups * SAMPLES)],
    }
    other = deepcopy(model)
    settings = {
        "samples": SAMPLES,
        "response": given.response,
        "minibatches": MINIBATCHES,
        "microbatch": MICROBATCH,
        "learning_rate": LEARNING_RATE,
        "clip": (CLIP_LOW, CLIP_HIGH),
        "max_grad_norm": MAX_GRAD_NORM,
    }
    return {"ours": Ours(model, inputs, settings), "peer": Plain(other, inputs, settings)}


def _gradient_difference(sides: dict[str, Any]) -> float:
    """|ours - peer| / |peer| of what the first optimizer step of each uses."""
    ours, peer = sides["ours"].first_gradients(), sides["peer"].first_gradients()
    apart = sum(float((ours[name] - peer[name]).double().square().sum()) for name in peer)
    size = sum(float(peer[name].double().square().sum()) for name in peer)
    return (apart / size) ** 0.5


if __name__ == "__main__":
    main()
