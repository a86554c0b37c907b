"""The columns of steps/NNNNNN.parquet and eval/NNNNNN.parquet. docs/run-folder.md explains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT_VERSION = 1

#: Column -> (Arrow type, may be null). The order is that of ResponseRow.
RESPONSE_COLUMNS: dict[str, tuple[str, bool]] = {
    "prompt_id": ("string", False),
    "source": ("string", False),
    "group": ("int32", False),
    "sample": ("int32", False),
    "prompt": ("string", False),
    "text": ("string", False),
    "tokens": ("list<int32>", False),
    "reward": ("float64", True),
    "parts": ("map<string, float64>", False),
    "failure": ("string", True),
    "advantage": ("float64", False),
    "length": ("int32", False),
    "finish": ("string", False),
    "version": ("int32", False),
    "minibatch": ("int32", True),
    "engine_logp": ("list<float32>", False),
    "old_logp": ("list<float32>", True),
    "logp": ("list<float32>", True),
    "log_s": ("float64", True),
    "cut_low": ("int32", False),
    "cut_high": ("int32", False),
    "loss": ("float64", True),
    "skipped": ("string", True),
}

#: The same for EvalRow.
EVAL_COLUMNS: dict[str, tuple[str, bool]] = {
    "prompt_id": ("string", False),
    "source": ("string", False),
    "prompt": ("string", False),
    "answer": ("string", True),
    "sample": ("int32", False),
    "greedy": ("bool", False),
    "text": ("string", False),
    "tokens": ("list<int32>", False),
    "reward": ("float64", True),
    "parts": ("map<string, float64>", False),
    "failure": ("string", True),
    "length": ("int32", False),
    "finish": ("string", False),
    "version": ("int32", False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRow:
    """One answer of an evaluation, as it lies in eval/NNNNNN.parquet. answer: the gold one as
    text. greedy: sampled at temperature 0; `sample` counts within greedy and within sampled."""

    prompt_id: str
    source: str
    prompt: str
    answer: str | None
    sample: int
    greedy: bool
    text: str
    tokens: list[int]
    reward: float | None
    parts: Mapping[str, float]
    failure: str | None
    length: int
    finish: str
    version: int


def arrow_schema(columns: Mapping[str, tuple[str, bool]], step: int) -> pa.Schema:
    """The Arrow schema of one file; its metadata carries the format version and the step."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "bool": pa.bool_(),
        "int32": pa.int32(),
        "float64": pa.float64(),
        "list<int32>": pa.list_(pa.int32()),
        "list<float32>": pa.list_(pa.float32()),
        "map<string, float64>": pa.map_(pa.string(), pa.float64()),
    }
    fields = [pa.field(name, types[kind], nullable) for name, (kind, nullable) in columns.items()]
    return pa.schema(fields, metadata={"gspo.format": str(FORMAT_VERSION), "gspo.step": str(step)})
