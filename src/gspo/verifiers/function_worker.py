"""The worker side of a function verifier with a limit: loads the user's file and calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gspo.errors import RecipeError
from gspo.verifiers.contained import contained
from gspo.verifiers.loading import load_function
from gspo.verifiers.returned import failed, plain_verdict, plain_verdicts


def prepare(settings: dict[str, str]) -> Callable[[Any], list[dict[str, Any]]]:
    """The function of one job: {arguments, num_responses}; num_responses is null where the call is
    for one response. settings: {place, sha256} of the function."""
    loaded = load_function(settings["place"])
    if loaded.sha256 != settings["sha256"]:
        raise RecipeError(f"{loaded.path} has changed since it was read; start again")
    function = loaded.function

    def call(job: dict[str, Any]) -> list[dict[str, Any]]:
        num_responses = job["num_responses"]
        with contained() as caught:
            value = function(**job["arguments"])
            if num_responses is None:
                return [plain_verdict(value)]
            return plain_verdicts(value, num_responses)
        if isinstance(caught.error, MemoryError):
            raise caught.error
        return [failed(caught.reason)] * (num_responses or 1)

    return call
