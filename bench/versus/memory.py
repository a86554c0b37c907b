"""Memory of this process, from /proc. Standard library only: both environments read it."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

RESET_PEAK = "5"  # written to clear_refs, it sets VmHWM back to what is resident now


def field_mb(status: str, name: str) -> float:
    """A field of /proc/PID/status, in megabytes of 10^6 bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise ValueError(f"/proc/self/status has no {name}; this needs Linux")
    return int(found[1]) * 1024 / 1e6


def resident_mb() -> float:
    """Resident now, after the allocator has handed back what it holds unused."""
    ctypes.CDLL(None).malloc_trim(0)
    return field_mb(Path("/proc/self/status").read_text(), "VmRSS")


def reset_peak() -> None:
    """From here on the peak is counted anew."""
    Path("/proc/self/clear_refs").write_text(RESET_PEAK)


def peak_mb() -> float:
    """Most that was resident since `reset_peak`."""
    return field_mb(Path("/proc/self/status").read_text(), "VmHWM")
