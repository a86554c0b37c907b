"""Objectives on padded log-probs, as drop-in functions for other training loops.

They take (N, T) tensors and a mask, hand the trained tokens to the ragged objective, and divide
by its own denominator, counted over this call alone. Loops that accumulate micro-batches should
use the ragged functions and count D over the whole optimizer step.
"""

from __future__ import annotations

import warnings

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gspo.errors import GspoError, GspoWarning, NumericsError
from gspo.named_settings import objective_settings
from gspo.ratios import PRECISE, too_coarse
from gspo.segments import Segments
from gspo.settings import GSPO, ClipRange, ObjectiveSettings
from gspo.types import Surrogate

PaddedStats = dict[str, float | None]


def gspo_loss(
    logp: Tensor,
    logp_old: Tensor,
    adv: Tensor,
    mask: Tensor,
    eps_low: float | int = 3e-4,
    eps_high: float | int = 4e-4,
) -> tuple[Tensor, PaddedStats]:
    """GSPO's loss, a scalar, and what the clip did.

    logp, logp_old: (N, T), nats; float16 and bfloat16 are upcast with a GspoWarning. adv: (N,).
    mask: (N, T), bool or 0/1, true on trained tokens; what stands elsewhere, even NaN, changes
    nothing. Rows without a trained token leave every mean.

    Statistics, over the rows with a trained token; None where there are none:
    clip_frac_seq: share of rows whose gradient the clip made zero (rows of advantage 0 count, as
    not clipped). log_s_mean, log_s_std: of the mean log-ratio before any bound; the std is
    unbiased and None for one row.

    Raises GspoError for shapes that do not fit or a mask of other numbers, RecipeError for an
    impossible range.

    >>> logp = torch.zeros(2, 3, requires_grad=True)
    >>> loss, stats = gspo_loss(logp, torch.zeros(2, 3), torch.tensor([1.0, -1.0]), torch.ones(2, 3))
    >>> loss.item(), stats
    (0.0, {'clip_frac_seq': 0.0, 'log_s_mean': 0.0, 'log_s_std': 0.0})
    """
    objective = GSPO(clip=ClipRange(low=eps_low, high=eps_high))
    return _padded_loss(objective, logp, logp_old, adv, mask)


def objective_loss(
    name: str,
    logp: Tensor,
    logp_old: Tensor,
    adv: Tensor,
    mask: Tensor,
    **settings: float | int | None,
) -> tuple[Tensor, PaddedStats]:
    """Any objective's loss by name, a scalar, and what its clip did.

    settings: low and high (distances around ratio 1; in log space for gmpo), max_tokens
    (dr_grpo, required), tau_pos and tau_neg (sapo), dual_clip (ppo); what is left out has the
    objective's own default. adv: (N,), or (N, T) for gspo_token, where (N,) is spread.

    Everything else is as for `gspo_loss`. For token objectives clip_frac_seq is the share of
    rows with every token cut, and clip_frac_tok that of trained tokens cut.

    Raises RecipeError for an unknown name or setting, naming the nearest.
    """
    return _padded_loss(objective_settings(name, settings), logp, logp_old, adv, mask)


def _padded_loss(
    objective: ObjectiveSettings, logp: Tensor, logp_old: Tensor, adv: Tensor, mask: Tensor
) -> tuple[Tensor, PaddedStats]:
    _check_shapes(objective.name, logp, logp_old, adv, mask)
    segments = Segments.from_mask(_as_bool(mask))
    logp_N = segments.take(_precise(logp))
    old_logp_N = segments.take(_precise(logp_old))
    advantage = _advantage(objective.name, adv, segments).to(logp_N)
    for what, values in (("logp", logp_N), ("logp_old", old_logp_N), ("adv", advantage)):
        if not bool(values.isfinite().all()):
            bad = float(values.detach()[~values.isfinite()][0])
            raise NumericsError(
                f"{what} holds {bad} where the mask is set; wanted finite numbers on every trained token: mask it out, or find where it comes from"
            )
    surrogate = objective(logp_N, old_logp_N, advantage, segments)
    num_responses = int((segments.lengths > 0).sum())
    loss = surrogate.loss.sum() / objective.divisor(num_responses, segments.num_tokens)
    return loss, _stats(objective, surrogate)


def _check_shapes(name: str, logp: Tensor, logp_old: Tensor, adv: Tensor, mask: Tensor) -> None:
    shape = tuple(logp.shape)
    per_row, per_token = shape[:1], shape
    wanted_adv = [per_row, per_token] if name == "gspo_token" else [per_row]
    got = f"got logp {shape}, logp_old {tuple(logp_old.shape)}, adv {tuple(adv.shape)}, mask {tuple(mask.shape)}"
    if len(shape) != 2 or shape != tuple(logp_old.shape) or shape != tuple(mask.shape):
        raise GspoError(f"{got}; wanted logp, logp_old and mask of one shape (rows, tokens)")
    if tuple(adv.shape) not in wanted_adv:
        wanted = " or ".join(str(shape) for shape in wanted_adv)
        raise GspoError(f"{got}; {name} wants adv of shape {wanted}")


def _as_bool(mask: Tensor) -> Bool[Tensor, "B L"]:
    trained = mask != 0
    if mask.dtype != torch.bool and bool((trained & (mask != 1)).any()):
        raise GspoError(
            f"mask holds numbers from {mask.min()} to {mask.max()}; wanted 0 and 1 only: "
            "weights belong into the advantage"
        )
    return trained


def _precise(logp: Tensor) -> Float[Tensor, "B L"]:
    if logp.dtype in PRECISE:
        return logp
    warnings.warn(
        too_coarse(logp.dtype) + ": upcast to float32, but what was rounded away stays lost",
        GspoWarning,
        stacklevel=4,
    )
    return logp.float()


def _advantage(name: str, adv: Tensor, segments: Segments) -> Tensor:
    if name != "gspo_token":
        return adv
    return segments.spread(adv) if adv.ndim == 1 else segments.take(adv)


def _stats(objective: ObjectiveSettings, surrogate: Surrogate) -> PaddedStats:
    segments = surrogate.segments
    trained = segments.lengths > 0
    cut = (surrogate.cut_low | surrogate.cut_high).to(surrogate.loss.dtype)
    if objective.unit == "sequence":
        log_s, cut_rows = surrogate.log_ratio, cut
    else:
        log_s, cut_rows = segments.mean(surrogate.log_ratio), segments.mean(cut) == 1
    log_s, cut_rows = log_s[trained], cut_rows[trained].to(log_s)

    stats: PaddedStats = {
        "clip_frac_seq": float(cut_rows.mean()) if log_s.numel() else None,
        "log_s_mean": float(log_s.mean()) if log_s.numel() else None,
        "log_s_std": float(log_s.std()) if log_s.numel() > 1 else None,
    }
    if objective.unit == "token":
        stats["clip_frac_tok"] = float(cut.mean()) if cut.numel() else None
    return stats
