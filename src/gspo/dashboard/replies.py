"""What goes back over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from gspo.dashboard.plain import json_bytes

NO_STORE = {"cache-control": "no-store"}


def answered(answer: Mapping[str, Any], status: int = 200) -> Response:
    """An answer as JSON."""
    return Response(json_bytes(answer), status, NO_STORE, "application/json")


def failure(status: int, text: str) -> Response:
    """What was given, what was wanted, what to do."""
    return answered({"error": text}, status)
