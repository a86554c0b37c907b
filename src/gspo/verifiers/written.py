"""A response that nobody sampled: a gold answer, or a row of a file."""

from __future__ import annotations

from gspo.types import Rollout


def written(text: str) -> Rollout:
    """A finished response of this text, without tokens."""
    return Rollout(
        prompt_ids=(),
        response_ids=(),
        trained=(),
        engine_logp=(),
        text=text,
        finish="stop",
        version=0,
    )
