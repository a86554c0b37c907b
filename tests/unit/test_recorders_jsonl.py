"""Every line is strict JSON, whatever was recorded; every damaged line is skipped and named."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gspo.errors import GspoError, ResourceError
from gspo.recorders import jsonl
from gspo.recorders.durable import replacing


def strict(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text.encode("ascii")
    return json.loads(text, parse_constant=refuse)


def test_a_line_worked_by_hand() -> None:
    line = jsonl.line(
        {
            "step": 12,
            "nan": math.nan,
            "inf": math.inf,
            "minus": -math.inf,
            "huge": 10**400,
            "large": 2**63,
            "numpy": np.float32(0.5),
            "numpy_int": np.int64(7),
            "bf16": torch.tensor(1.5, dtype=torch.bfloat16),
            "tensor_nan": torch.tensor(math.nan),
            "half": "a\ud800b",
            "control": "\x00\x1b\u2028",
            "histogram": {"edges": (-1.0, 0.0, 1.0), "counts": torch.tensor([3, 4])},
            "none": None,
            "flag": True,
            "path": Path("runs/x"),
        }
    )
    assert line.count("\n") == 1
    assert strict(line) == {
        "step": 12,
        "nan": None,
        "inf": None,
        "minus": None,
        "huge": None,
        "large": float(2**63),
        "numpy": 0.5,
        "numpy_int": 7,
        "bf16": 1.5,
        "tensor_nan": None,
        "half": "a\ufffdb",
        "control": "\x00\x1b\u2028",
        "histogram": {"edges": [-1.0, 0.0, 1.0], "counts": [3, 4]},
        "none": None,
        "flag": True,
        "path": "runs/x",
        "nonfinite": ["nan", "inf", "minus", "huge", "tensor_nan"],
    }


def test_what_json_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(GspoError, match="optimizer is a object"):
        jsonl.line({"optimizer": object()})


def test_damaged_lines_are_skipped_and_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(
        b'{"step": 1}\n'
        b'{"step": 2, "loss": NaN}\n'
        b"\xff\xfe\n"
        b"[1]\n"
        b'{"loss": 1}\n'
        b'{"step": true}\n' + b"[" * 100_000 + b"\n"
        b"\0\0\0\n"
        b'{"step": 3}\n'
        b'{"step": 4, "lo'
    )
    rows, reasons = jsonl.read(path)
    assert rows == [{"step": 1}, {"step": 3}]
    assert [reason.split(":")[0] for reason in reasons] == [
        f"line {n}" for n in (2, 3, 4, 5, 6, 7, 8, 10)
    ]
    assert reasons[-1] == "line 10: half-written last line (15 bytes)"


def test_a_whole_last_line_without_newline_counts(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}')
    assert jsonl.read(path) == ([{"step": 1}, {"step": 2}], [])


def test_truncation_keeps_what_is_at_or_before_the_step(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2, "a": 0.1}\n{"step": 3}\n{"step": 4, "l')
    assert jsonl.truncate_after(path, 2) == 2
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2, "a": 0.1}\n'
    assert jsonl.truncate_after(path, 2) == 0


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    file = jsonl.JsonLines(path)
    file.append({"step": 1})
    real = os.write

    def short_then_full(descriptor: int, data: memoryview) -> int:
        if len(data) > 5:
            return real(descriptor, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", short_then_full)
    with pytest.raises(ResourceError, match=r"metrics.jsonl could not be written.*full"):
        file.append({"step": 2, "loss": 1.0})
    monkeypatch.undo()
    file.append({"step": 2})
    file.close()
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'


def test_a_failed_replacement_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - raised three lines above
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_last_values_come_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1, "a": 1, "b": 5}\n{"step": 2, "a": 2, "b": null}\n{"st')
    assert jsonl.last_values(path, ("step", "a", "b", "c")) == {"step": 2, "a": 2, "b": 5}
