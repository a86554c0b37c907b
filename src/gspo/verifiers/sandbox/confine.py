"""What a job puts on itself before it reads a byte that a model wrote. The order matters:

limits, then the uid (which ends every capability), then what only needs `no_new_privs`: not
dumpable, dies with the fork server, Landlock, and last the seccomp filter, which forbids all of
the above.
"""

from __future__ import annotations

import ctypes
import os
import resource
from dataclasses import dataclass

from gspo.verifiers.sandbox import landlock, seccomp
from gspo.verifiers.sandbox.syscalls import libc

MAX_DESCRIPTORS = 64  # asyncio needs 6; each pipe holds up to 64 KiB of kernel memory
MAX_TASKS = 64  # threads of a uid of its own; address space ends them sooner
STACK_BYTES = 120 * 2**20  # deep recursion through C; the kernel keeps 128 MiB free below a stack

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_SIGKILL = 9


@dataclass(frozen=True, slots=True)
class Confinement:
    """uid: an unused one to drop to, None where the fork server is no root. ruleset: Landlock's
    descriptor; None: no files can be opened at all. filter_code: None confines by limits alone."""

    uid: int | None
    ruleset: int | None
    filter_code: bytes | None


def confine(how: Confinement, cpu_s: int, memory_bytes: int) -> None:
    """Confine this process for good; OSError or ValueError where any step fails."""
    server = os.getppid()
    _limit(how.uid is not None, cpu_s, memory_bytes)
    if how.uid is not None:
        os.setgroups([])
        os.setresgid(how.uid, how.uid, how.uid)
        os.setresuid(how.uid, how.uid, how.uid)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)  # a change of uid would clear it
    if os.getppid() != server:
        raise OSError("the fork server died before its job began")
    if how.ruleset is not None:
        landlock.restrict(how.ruleset)
        os.close(how.ruleset)
    if how.filter_code is not None:
        seccomp.install(how.filter_code)


def _limit(own_uid: bool, cpu_s: int, memory_bytes: int) -> None:
    limits = {
        resource.RLIMIT_AS: (memory_bytes, memory_bytes),
        resource.RLIMIT_CPU: (cpu_s, cpu_s),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_NOFILE: (MAX_DESCRIPTORS, MAX_DESCRIPTORS),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_MEMLOCK: (0, 0),
    }
    if own_uid:  # it counts all of a uid's threads: on a shared one, the trainer's too
        limits[resource.RLIMIT_NPROC] = (MAX_TASKS, MAX_TASKS)
    for kind, values in limits.items():
        resource.setrlimit(kind, values)
    _, hardest = resource.getrlimit(resource.RLIMIT_STACK)
    soft = STACK_BYTES if hardest == resource.RLIM_INFINITY else min(STACK_BYTES, hardest)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hardest))


def _prctl(option: int, value: int) -> None:
    if libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) refused")
