"""What glibc is told, and when."""

import platform
import subprocess
import sys

import pytest

from gspo.policy import allocator
from gspo.policy.forward import TokenLogp
from gspo.policy.model import tiny_model

# In a process of its own: what glibc is told holds until the process ends. hblks of mallinfo2 is
# the number of blocks that are mapped by themselves.
COUNT = """
import ctypes
from gspo.policy.allocator import MAPPED_FROM_BYTES, map_large_blocks

class Info(ctypes.Structure):
    _fields_ = [(f"f{i}", ctypes.c_size_t) for i in range(10)]

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.mallinfo2.restype = Info
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.free(libc.malloc(4 * MAPPED_FROM_BYTES))  # glibc raises its threshold
told = map_large_blocks() if {tell} else False
before = libc.mallinfo2().f3
libc.malloc(MAPPED_FROM_BYTES)
print(told, libc.mallinfo2().f3 - before)
"""


def large_block(tell, **environment):
    done = subprocess.run(
        [sys.executable, "-c", COUNT.replace("{tell}", str(tell))],
        env={"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_a_large_block_is_mapped_once_glibc_is_told():
    if platform.libc_ver()[0] != "glibc":
        assert large_block(tell=True)[0] == "False"
        return
    assert large_block(tell=False) == ["False", "0"]
    assert large_block(tell=True) == ["True", "1"]


def test_the_users_own_threshold_stands(monkeypatch):
    monkeypatch.setenv(allocator.USERS_OWN, "1000000")
    assert not allocator.map_large_blocks()


@pytest.mark.parametrize(("vocabulary", "cuts"), [(1_000, False), (60_000, True)])
def test_only_a_vocabulary_that_is_made_in_chunks_asks_for_it(vocabulary, cuts):
    model = tiny_model(
        vocabulary,
        hidden=8,
        layers=1,
        heads=2,
        kv_heads=1,
        intermediate=8,
        max_positions=64,
        seed=0,
    )
    assert TokenLogp(model).cuts_vocabulary(8192) is cuts
    assert not TokenLogp(model).cuts_vocabulary(1)
