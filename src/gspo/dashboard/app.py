"""Addresses and their answers. Everything is read; nothing here writes."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gspo.dashboard import answers
from gspo.dashboard.answers import BadQueryError, NotFoundError, RunFolderView, RunIndex
from gspo.dashboard.page import (
    BUNDLE,
    PAGE,
    PLOTLY,
    STATIC,
    STYLE,
    bundle,
    plotly_file,
    served_page,
    static_text,
)
from gspo.dashboard.query import (
    MAX_STEPS,
    MAX_TOKENS,
    RESPONSE_NAMES,
    Query,
    response_query,
    whole,
)
from gspo.dashboard.replies import NO_STORE, answered, failure
from gspo.dashboard.security import Guard, Login, Names
from gspo.errors import DataError
from gspo.recorders.sanitize import well_formed

NUM_THREADS = 4  # more of them only hold more memory: an answer takes milliseconds
MAX_STEP = MAX_ROW = 10**9
JAVASCRIPT, CSS, CSV = "text/javascript", "text/css", "text/csv"
#: A browser asks again whether a file changed, and is told by its tag that it did not.
REVALIDATE = {"cache-control": "no-cache"}

Answer = Mapping[str, Any]


def make_app(index: RunIndex, names: Names, login: Login | None = None) -> Guard:
    """The whole application. login: ask for a token."""
    app = Starlette(
        routes=_routes(index),
        exception_handlers={
            BadQueryError: _said(400),
            NotFoundError: _said(404),
            DataError: _said(404),
            HTTPException: _http_error,
            Exception: _broken,
        },
        lifespan=_lifespan,
    )
    app.router.redirect_slashes = False  # an address is what it is
    return Guard(app, names, login)


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = NUM_THREADS
    yield


def _routes(index: RunIndex) -> list[Route]:
    return [
        Route("/", _page),
        Route(f"/{PLOTLY}", _plotly),
        Route("/static/{name}", _static),
        _answer("/api/definitions", lambda query: answers.definitions()),
        _answer("/api/runs", lambda query: answers.runs(index)),
        _answer("/api/pulse", lambda query: answers.pulse(index, query.all("run")), "run"),
        *_run_routes(index),
    ]


def _answer(path: str, make: Callable[[Query], Answer], *allowed: str) -> Route:
    """allowed: names that the query may have."""

    def endpoint(request: Request) -> Response:
        return answered(make(Query(request.query_params, allowed)))

    return Route(path, endpoint)


def _run_routes(index: RunIndex) -> list[Route]:
    def of_run(
        path: str,
        make: Callable[[RunFolderView, Query, Mapping[str, Any]], Answer | Response],
        *allowed: str,
    ) -> Route:
        def endpoint(request: Request) -> Response:
            run = index.find(request.path_params["run"])
            query = Query(request.query_params, allowed)
            with run.lock:
                made = make(run, query, request.path_params)
            return made if isinstance(made, Response) else answered(made)

        return Route(f"/api/runs/{{run}}/{path}", endpoint)

    def recipe(run: RunFolderView, query: Query, at: Mapping[str, Any]) -> Answer:
        other = query.text("against")
        return answers.recipe(run, None if other is None else index.find(other))

    return [
        of_run("overview", lambda run, query, at: answers.overview(run)),
        of_run("metrics", _metrics, "name", "after"),
        of_run("histograms", _histograms, "name", "after", "limit"),
        of_run("recipe", recipe, "against"),
        of_run("steps/{step}/units", lambda run, query, at: answers.units(run, _step(at))),
        of_run("steps/{step}/responses", _responses, *RESPONSE_NAMES),
        of_run("steps/{step}/responses.csv", _csv),
        of_run("steps/{step}/responses/{row}", _response, "full"),
        of_run("steps/{step}/top_tokens", _top_tokens, "limit"),
    ]


def _metrics(run: RunFolderView, query: Query, at: Mapping[str, Any]) -> Answer:
    names = query.all("name")
    if not names:
        raise BadQueryError("the query has no name; wanted name=reward/mean, name=clip/* or name=*")
    return answers.metrics(run, names, query.whole("after", low=-1) or 0)


def _histograms(run: RunFolderView, query: Query, at: Mapping[str, Any]) -> Answer:
    name = query.text("name")
    if name is None:
        raise BadQueryError("the query has no name; wanted name=log_s/histogram")
    after = query.whole("after", low=-1) or 0
    return answers.histograms(run, name, after, query.whole("limit", low=1, high=MAX_STEPS) or 400)


def _responses(run: RunFolderView, query: Query, at: Mapping[str, Any]) -> Answer:
    return answers.responses(run, _step(at), response_query(query))


def _response(run: RunFolderView, query: Query, at: Mapping[str, Any]) -> Answer:
    row = whole(at["row"], "the row is", 0, MAX_ROW)
    return answers.response(run, _step(at), row, query.flag("full"))


def _top_tokens(run: RunFolderView, query: Query, at: Mapping[str, Any]) -> Answer:
    return answers.top_tokens(run, _step(at), query.whole("limit", low=1, high=MAX_TOKENS) or 40)


def _csv(run: RunFolderView, query: Query, at: Mapping[str, Any]) -> Response:
    step = _step(at)
    name = f"{run.id}-step-{step}.csv"  # the run's name may hold anything
    headers = {"content-disposition": f'attachment; filename="{name}"', **NO_STORE}
    return Response(well_formed(answers.responses_csv(run, step)), headers=headers, media_type=CSV)


def _step(at: Mapping[str, Any]) -> int:
    return whole(at["step"], "the step is", 0, MAX_STEP)


def _page(request: Request) -> Response:
    if not (STATIC / PAGE).is_file():
        return failure(404, f"this gspo was installed without {PAGE}: install it anew")
    return Response(served_page(), headers=REVALIDATE, media_type="text/html")


def _plotly(request: Request) -> Response:
    file = plotly_file()
    found = file.stat()
    tag = f"{found.st_mtime_ns:x}-{found.st_size:x}"
    return _tagged(request, tag, file.read_bytes, JAVASCRIPT)


def _static(request: Request) -> Response:
    """Only names that are known: a name of the address never becomes a path."""
    name = request.path_params["name"]
    makers = {STYLE: (lambda: static_text(STYLE), CSS), BUNDLE: (bundle, JAVASCRIPT)}
    if name not in makers:
        return failure(404, f"there is no file {name!r:.80} of the page")
    make, media_type = makers[name]
    try:
        body = make().encode()
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        return failure(404, f"this gspo was installed without {missing}: install it anew")
    return _tagged(request, hashlib.sha256(body).hexdigest()[:16], lambda: body, media_type)


def _tagged(request: Request, tag: str, make: Callable[[], bytes], media_type: str) -> Response:
    """A body, unless the browser has the one of this tag. In one piece: a file sent by the chunk
    waits for a thread at each."""
    headers = {**REVALIDATE, "etag": f'"{tag}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(make(), headers=headers, media_type=media_type)


def _said(status: int) -> Callable[[Request, Exception], Response]:
    return lambda request, error: failure(status, str(error))


def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return failure(status, f"there is nothing at {request.url.path!r:.80}: the page is at /")


def _broken(request: Request, error: Exception) -> Response:
    return failure(500, f"the server broke ({type(error).__name__}): its terminal shows where")
