"""Devices by name: memory, speed of matrix products, bandwidth of memory.

Speeds are the makers' for dense products, without sparsity; memory is what the driver reports as
total. Of either a run reaches a part.
"""

from __future__ import annotations

from dataclasses import dataclass

from gspo.errors import RecipeError, nearest

MIB = 2**20
TERA, GIGA = 1e12, 1e9
THIS_MACHINE = "this-machine"
#: Of a device's memory: the rest is what its allocator cannot use for cut-up room.
USABLE_SHARE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """memory in bytes; bfloat16 and float32 in operations a second; bandwidth in bytes a second.
    is_cpu: the machine's own processor."""

    name: str
    memory: int
    bfloat16: float
    float32: float
    bandwidth: float
    is_cpu: bool = False

    @property
    def usable(self) -> int:
        """Bytes that a plan may fill."""
        return int(USABLE_SHARE * self.memory)


def _device(name: str, mib: int, bfloat16: float, float32: float, bandwidth: float) -> Device:
    return Device(
        name=name,
        memory=mib * MIB,
        bfloat16=bfloat16 * TERA,
        float32=float32 * TERA,
        bandwidth=bandwidth * GIGA,
    )


#: name, MiB, TFLOP/s in bfloat16 and float32, GB/s.
DEVICES: dict[str, Device] = {
    device.name: device
    for device in (
        _device("rtx-4090", 24_564, 165.2, 82.6, 1_008),
        _device("l4", 23_034, 121, 30.3, 300),
        _device("a10g", 23_028, 70, 35, 600),
        _device("a100-40", 40_960, 312, 19.5, 1_555),
        _device("a100-80", 81_920, 312, 19.5, 2_039),
        _device("h100", 81_559, 989, 67, 3_350),
        _device("h200", 143_771, 989, 67, 4_800),
        _device("b200", 183_359, 2_250, 75, 8_000),
        _device("mi300x", 196_592, 1_307, 163.4, 5_300),
    )
}


def device_named(name: str) -> Device:
    """Case, blanks and underscores do not matter; `this-machine` is measured.

    Raises RecipeError for a name that is not in the table, naming the nearest.
    """
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    if key == THIS_MACHINE:
        from gspo.plan.machine import this_machine

        return this_machine()
    if key not in DEVICES:
        known = [*DEVICES, THIS_MACHINE]
        raise RecipeError(f"the plan knows no device {name!r}; {nearest(key, known)}")
    return DEVICES[key]
