"""The traps: what is checked, why it matters, what to do. A loss is tried on them in this order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trap:
    """checks: what holds for a loss that does not fall in."""

    checks: str
    why: str
    advice: str


TRAPS: dict[str, Trap] = {
    "exception": Trap(
        "takes (logp, logp_old, adv, mask) and returns a scalar, or (scalar, stats)",
        "The kit could not call it, so nothing else was tried.",
        "Wrap it in a function of these four tensors; settings of its own belong into the wrapper.",
    ),
    "no_gradient": Trap(
        "a gradient reaches logp",
        "A loss without a gradient trains nothing, and no other number shows it.",
        "Look for a detach() on the way from logp to the loss, or for torch.no_grad().",
    ),
    "formula": Trap(
        "loss and gradient are the objective's",
        "What is trained is another objective than the name says.",
        "Compare the ratio, the clip and the two means with docs/objectives.md, one by one.",
    ),
    "ratio": Trap(
        "the ratio is formed over the right tokens",
        "The range is meant for this ratio: for another one it cuts nearly everything or nothing.",
        "Form the mean of the log-ratios over the trained tokens of a response, and exp() of that.",
    ),
    "own_anchor": Trap(
        "the ratio is taken against logp_old",
        "Every ratio is 1: later minibatches are not corrected, and the clip never acts.",
        "Use the log-probs from the start of the step, kept the same for all its minibatches.",
    ),
    "clip": Trap(
        "the clip stops what moved past the range to where A pushes, and nothing else",
        "A unit outside on the other side has a gradient that pulls it back, and needs it; one that is kept beyond the range has no trust region.",
        "minimum(s A, clip(s, 1 - low, 1 + high) A), with low and high of this objective.",
    ),
    "advantage": Trap(
        "advantages are used as they are given",
        "Normalising twice, or over another set than the group, changes which responses are pushed.",
        "Normalise once, within the group, before the loss.",
    ),
    "aggregation": Trap(
        "tokens and responses are averaged as the objective says",
        "It decides whether a long response counts as much as a short one, or as often as it has tokens.",
        "Average over the tokens of each response and then over responses, or choose the other objective by its name.",
    ),
    "scale": Trap(
        "the gradient has the right sign and size",
        "A constant factor is a factor on the learning rate, and on what a limit on the gradient's norm does.",
        "Divide by the objective's own denominator; the loss is minimised, so its sign is minus.",
    ),
    "broadcast": Trap(
        "advantages belong to rows, also where rows and tokens are equally many",
        "(B,) times (B, T) puts the advantage of response 3 on every third token, without an error where B equals T.",
        "adv.unsqueeze(1), and keep (B, 1) for everything that belongs to a response.",
    ),
    "row_order": Trap(
        "rows in another order give the same gradient",
        "Groups taken by position break as soon as a sampler mixes or drops rows.",
        "Carry group ids; let nothing in the loss depend on the index of a row.",
    ),
    "token_positions": Trap(
        "trained tokens may stand anywhere in a row",
        "Left padding and tokens of tools put untrained tokens before and between.",
        "Take lengths from the mask's sum, tokens from the mask, never from an index or the first column.",
    ),
    "pad_width": Trap(
        "more padding changes nothing",
        "The longest response of a batch would scale the gradient of all others.",
        "Divide by mask.sum(1), never by the width, and never take mean() over padding.",
    ),
    "padding": Trap(
        "what stands in padded places changes nothing, also 1e6, NaN and infinity",
        "Padding comes from other kernels and is not always finite: 0 x NaN is NaN, for the whole batch.",
        "torch.where(mask, logp - logp_old, 0) before anything else; do not mask by multiplying.",
    ),
    "empty_rows": Trap(
        "rows without a trained token change nothing",
        "Masking truncated responses makes such rows; the more of them, the smaller the step for the rest, or all of it is NaN.",
        "Divide by the number of rows with a token: (mask.sum(1) > 0).sum().clamp(min=1).",
    ),
    "single_row": Trap(
        "a batch of one response works",
        "The last micro-batch may hold one, and NaN reaches the optimizer or the log.",
        "A spread of one value is none: use std only from two rows on.",
    ),
    "token_clamp": Trap(
        "log-ratios are averaged before anything is held",
        "Holding single tokens first changes the mean: [100, -50, -50] has a ratio of 1 and should train as such.",
        "Take the mean over the response, then bound the mean.",
    ),
    "unbounded_exp": Trap(
        "a ratio of e^100 leaves loss and gradient finite",
        "One response far off is enough: infinity for A < 0, and for A > 0 a finite loss with a gradient of NaN, from the branch that minimum() did not take.",
        "Bound the log-ratio on both sides before exp(), as at 10 nats.",
    ),
    "order_of_addition": Trap(
        "the ratio does not depend on how large the log-probs are",
        "(s + logp) - logp rounds s to the steps of logp: in bfloat16 3.5e-4 becomes 0, in float32 an unlikely token loses a part of the range.",
        "(logp - logp.detach()) + log_s.detach(), in float32: the small difference first.",
    ),
    "low_precision": Trap(
        "bfloat16 and float16 log-probs are taken as float32, or refused",
        "1 + 4e-4 is 1.0 in both, so the clip never acts and every ratio is 1.",
        "logits.float() before log_softmax; in the loss, subtract, average and compare in float32.",
    ),
    "dead_rows": Trap(
        "where all is cut, or all advantages are 0, the gradient is exactly 0",
        "None or NaN instead of zeros stops a loop, or leaves ranks waiting for one another.",
        "Keep the graph and multiply by zero through where(); drop no rows, they stay in D.",
    ),
    "micro_batches": Trap(
        "cutting a batch into micro-batches changes nothing",
        "A mean of means weighs a token by the micro-batch it happened to lie in.",
        "Count responses or tokens of the whole optimizer step first, and divide every part by that.",
    ),
    "statistics": Trap(
        "statistics are detached",
        "A tensor with its graph keeps every activation of the step alive.",
        "detach() or .item() before returning them.",
    ),
}
