"""Requests as they come over the wire: no client tidies the path up before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message

from tests import loops

HOST = {"host": "127.0.0.1:8470"}


@dataclass(frozen=True)
class Reply:
    """headers: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def ask(
    app: ASGIApp,
    target: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] = HOST,
) -> Reply:
    """One request. target: what stands after the method."""
    return ask_all(app, [target], method=method, headers=headers)[0]


def ask_all(
    app: ASGIApp, targets: Sequence[str], *, method: str = "GET", headers: Mapping[str, str] = HOST
) -> list[Reply]:
    """The same for many, one after another."""

    async def all_of_them() -> list[Reply]:
        return [await _ask(app, target, method, headers) for target in targets]

    return loops.run(all_of_them())


async def _ask(app: ASGIApp, target: str, method: str, headers: Mapping[str, str]) -> Reply:
    raw_path, _, query = target.encode().partition(b"?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw_path.decode("utf-8", "replace")),  # as uvicorn does
        "raw_path": raw_path,
        "root_path": "",
        "query_string": query,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 8470),
        "client": ("127.0.0.1", 5),
    }
    sent: list[Message] = []
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()  # nobody hangs up
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    return Reply(
        status=start["status"],
        headers={name.decode().lower(): value.decode() for name, value in start["headers"]},
        body=b"".join(message.get("body", b"") for message in sent[1:]),
    )
