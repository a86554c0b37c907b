"""What doctor says of threads, precision and allocator."""

from __future__ import annotations

import pytest
import torch

from gspo.cli import machine
from gspo.cli.output import MAX_CELL_CHARACTERS
from gspo.engines.packed import Rates


def test_every_line_is_there_and_fits_the_table():
    checks = list(machine.cpu_checks())
    names = [check.name for check in checks]
    assert names == ["threads", "float32", "bfloat16", "memory speed", "allocator"]
    assert max(len(check.detail) for check in checks) <= MAX_CELL_CHARACTERS
    assert checks[0].detail.startswith(f"{torch.get_num_threads()} in torch")


def test_more_threads_than_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert machine.threads(2, 2).detail == "2 in torch, 2 cores; OMP_NUM_THREADS is not set"
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    crowded = machine.threads(8, 2)
    assert not crowded.ok
    assert crowded.detail == "8 in torch, 2 cores; OMP_NUM_THREADS=8: set OMP_NUM_THREADS=2"


@pytest.mark.parametrize(
    ("small", "large", "ok", "words"),
    [
        ((150, 160), (220, 400), True, "160 GFLOP/s at demo size, 400 at 135 M; {} pays at 135 M"),
        ((100, 160), (220, 400), True, "160 GFLOP/s at demo size, 400 at 135 M; {} pays at both"),
        ((100, 60), (220, 90), False, "60 GFLOP/s at demo size, 90 at 135 M; {} pays at neither"),
    ],
)
def test_whether_bfloat16_pays(small, large, ok, words):
    check = machine.bfloat16({"demo size": Rates(*small), "135 M": Rates(*large)})
    assert check.ok == ok
    assert check.detail == words.format("engine.dtype=bfloat16")


def test_which_allocator(monkeypatch, tmp_path):
    maps, pages = tmp_path / "maps", tmp_path / "enabled"
    monkeypatch.setattr(machine, "MAPS", maps)
    monkeypatch.setattr(machine, "HUGE_PAGES", pages)
    monkeypatch.setattr(machine.platform, "libc_ver", lambda: ("glibc", "2.36"))
    assert machine.allocator().detail == "glibc 2.36; huge pages: unknown"
    maps.write_text("7f00-7f01 r-xp 00:00 12 /usr/lib/libtcmalloc_minimal.so.4\n7f02 [heap]\n")
    pages.write_text("always [madvise] never\n")
    assert machine.allocator().detail == "tcmalloc; huge pages: madvise"
