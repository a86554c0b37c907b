"""What the update's forward keeps of a layer for its backward, a token.

Read from the layers as `gspo.policy.fused` and `gspo.policy.attention` run them, and checked against
what autograd really saves in `tests/unit/test_plan_activations.py`. D hidden, Q query heads x head
size, K key-value heads x head size, I width of the MLP:

    norm        its input and its output; where it is not fused the normalised values as well
    attention   queries, keys, values, output; before a norm over heads, queries and keys once more
    MLP         both factors and their product; where it is not fused the bent factor as well
    a row       one number for each norm, of heads as well, and for each head's softmax
"""

from __future__ import annotations

from gspo.plan.parts import Setup
from gspo.policy.forward import MOST_RECOMPUTED

FLOAT32, HALF = 4, 2
#: Float32 numbers for each expert of a token: its id, three orders of the tokens, its weight.
ROUTES = 9


def kept_a_layer(setup: Setup) -> tuple[int, str]:
    """Bytes a token, and how they come about."""
    shape = setup.shape
    queries, keys = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    low = HALF if setup.products or setup.precision.compute == HALF else FLOAT32
    norm, head_norm = _norm_bytes(setup)
    terms = [
        (2 * norm, shape.hidden, "norms"),
        (low, 2 * queries + 2 * keys, "attention"),
        ((3 if shape.fused_mlp else 4) * low, shape.intermediate, "MLP"),
        (FLOAT32, 2 + shape.num_heads, "a row"),
    ]
    if shape.head_norms:
        terms.append((head_norm, queries + keys, "norms of heads"))
        terms.append((FLOAT32, shape.num_heads + shape.num_kv_heads, "their rows"))
    if shape.num_experts:
        used = shape.experts_used
        terms.append((2 * low * used, shape.hidden, "tokens at their experts"))
        terms.append((FLOAT32, shape.num_experts + ROUTES * used, "router"))
    if not setup.on_cpu:
        terms.append(_masked(setup, queries, keys, low))
    rank, adapted = setup.method.lora_rank or 0, len(setup.method.adapted(shape))
    if adapted:
        terms.append((low, -(-rank * adapted // shape.num_layers), "adapters"))
    total = sum(size * count for size, count, _ in terms)
    return total, " + ".join(f"{size} x {count:,} {name}" for size, count, name in terms)


def layers_made_twice(setup: Setup) -> bool:
    """The head outweighs the layers so far that they are run again, as `gspo.policy.forward` does."""
    body, head = setup.shape.num_body, setup.shape.head_size
    return 2 * body / (6 * body + 8 * head) <= MOST_RECOMPUTED


def _norm_bytes(setup: Setup) -> tuple[int, int]:
    """An element, of a norm over the hidden size and of one over a head, whose output is not kept:
    rotating it needs only the angles."""
    if setup.products:  # each of five maps rounds the norm's output for itself
        return FLOAT32 + 5 * HALF // 2, HALF
    if setup.precision.weight == FLOAT32:
        plain = FLOAT32 if setup.shape.fused_norms else 2 * FLOAT32
        return plain + FLOAT32, plain
    return FLOAT32 + HALF + HALF, FLOAT32 + HALF  # a float32 copy of the input, not the input


def _masked(setup: Setup, queries: int, keys: int, low: int) -> tuple[int, int, str]:
    """Away from the CPU attention is masked: rows are padded copies, with their prompt's keys."""
    work = setup.workload
    again = -(-keys * 2 * work.longest // work.response_tokens)
    return low, 2 * queries + again, "padded rows with their prompts"
