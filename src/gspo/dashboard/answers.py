"""The answers about runs, as plain data: what the server sends and the report holds.

    index = RunIndex(["runs"])           # folders of runs, or run folders
    run = index.find("0123456789")       # or open_view("runs/demo")
    runs(index), pulse(index, ids), overview(run), metrics(run, ["*"]), histograms(run, name)
    units(run, 12), responses(run, 12, ResponseQuery()), response(run, 12, row=3)
    top_tokens(run, 12), responses_csv(run, 12), recipe(run, other), definitions()

A run that is not there, or a step or row, is `NotFoundError`; a question that makes no sense is
`BadQueryError`. Both are DataErrors.
"""

from __future__ import annotations

from gspo.dashboard.answers_metrics import histograms, metrics
from gspo.dashboard.answers_overview import overview
from gspo.dashboard.answers_recipe import recipe
from gspo.dashboard.answers_responses import ResponseQuery, response, responses, responses_csv
from gspo.dashboard.answers_runs import pulse, runs
from gspo.dashboard.answers_tokens import top_tokens
from gspo.dashboard.answers_units import units
from gspo.dashboard.definitions import definitions
from gspo.dashboard.folder import BadQueryError, NotFoundError, RunFolderView, open_view
from gspo.dashboard.index import RunIndex

__all__ = [
    "BadQueryError",
    "NotFoundError",
    "ResponseQuery",
    "RunFolderView",
    "RunIndex",
    "definitions",
    "histograms",
    "metrics",
    "open_view",
    "overview",
    "pulse",
    "recipe",
    "response",
    "responses",
    "responses_csv",
    "runs",
    "top_tokens",
    "units",
]

# Signatures, all returning plain dicts unless said otherwise:
#   runs(index: RunIndex); pulse(index: RunIndex, ids: Sequence[str])
#   overview(run); metrics(run, names: Sequence[str], after: int = 0)
#   histograms(run, name: str, after: int = 0, limit: int = 400)
#   units(run, step: int); responses(run, step: int, query: ResponseQuery)
#   response(run, step: int, row: int, full: bool = False); top_tokens(run, step: int, limit: int = 40)
#   responses_csv(run, step: int) -> str; recipe(run, against: RunFolderView | None = None)
#   definitions(); open_view(path: Path | str) -> RunFolderView
