"""Canaries: small programs that try each forbidden act before any model's program runs.

An act is "refused" when the program was killed for it or got an exception; a canary that succeeds
says so with the value "done". One honest program must pass beside them. Each runs as a job like
any other, so what is tried is the sandbox as it is, on this machine, now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gspo.verifiers.sandbox.job import End, Expression, Job, Limits, Outcome
from gspo.verifiers.sandbox.syscalls import machine, number

LIMITS = Limits(cpu_s=2.0, wall_s=10.0, memory_mib=1024)

HONEST = """
import threading, re, json, heapq
def answer():
    found = []
    worker = threading.Thread(target=lambda: found.append(sum(range(10))))
    worker.start(); worker.join()
    return {"sum": found[0], "text": re.sub("a", "b", "banana")}
"""
HONEST_ANSWER = {"sum": 45, "text": "bbnbnb"}

_RAW = """
import ctypes, os
def call(number, *arguments):
    result = ctypes.CDLL(None, use_errno=True).syscall(number, *[ctypes.c_long(a) for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
def buffer(data=b"x"):
    return ctypes.addressof(keep.setdefault(len(keep), ctypes.create_string_buffer(data)))
keep = {}
own = f"gspo-canary-{os.urandom(8).hex()}"  # new each time: "exists already" is no refusal
"""

_PYTHON = {
    "write a file in /tmp": "open(f'/tmp/{own}', 'w'); os.unlink(f'/tmp/{own}')",
    "write a file in /dev/shm": "open(f'/dev/shm/{own}', 'w'); os.unlink(f'/dev/shm/{own}')",
    "write a file here": "open(own, 'w'); os.unlink(own)",
    "make a folder": "os.mkdir(f'/tmp/{own}'); os.rmdir(f'/tmp/{own}')",
    "make a link": "os.symlink('/etc/passwd', f'/tmp/{own}'); os.unlink(f'/tmp/{own}')",
    "make a fifo": "os.mkfifo(f'/tmp/{own}'); os.unlink(f'/tmp/{own}')",
    "read /etc/passwd": "open('/etc/passwd').read()",
    "list the root folder": "os.listdir('/')",
    "read the server's environment": "open(f'/proc/{os.getppid()}/environ', 'rb').read()",
    "read its own memory file": "open('/proc/self/mem', 'rb')",
    "start a process": "os._exit(0) if os.fork() == 0 else None",
    "run a command": "os.system('true')",
    "replace itself": "os.execv('/bin/true', ['true'])",
    "signal the server": "os.kill(os.getppid(), 0)",
    "own signals through fcntl": "import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
    "lower another's limits": "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE)",
    "open a TCP socket": "import socket; socket.socket()",
    "open a Unix socket": "import socket; socket.socket(socket.AF_UNIX)",
    "become root": "os.setuid(0)",
    "leave the session": "os.setsid()",
    "change its scheduling": "os.sched_setaffinity(0, {0})",
    "make a file in memory": "os.memfd_create('canary')",
}

#: By name and arguments; "buffer()" is a pointer to some bytes.
_SYSTEM_CALLS = {
    "make a user namespace": ("unshare", "0x10000000"),
    "mount": ("mount", "buffer(b'none')", "buffer(b'/tmp')", "buffer(b'tmpfs')", "0", "0"),
    "change the root folder": ("chroot", "buffer(b'/tmp')"),
    "trace another process": ("ptrace", "0x4206", "os.getppid()", "0", "0"),
    "read another's memory": ("process_vm_readv", "os.getppid()", "0", "0", "0", "0", "0"),
    "open a process": ("pidfd_open", "os.getppid()", "0"),
    "load a BPF program": ("bpf", "0", "buffer(bytes(128))", "128"),
    "set up io_uring": ("io_uring_setup", "1", "buffer(bytes(256))"),
    "handle its own page faults": ("userfaultfd", "1"),
    "use the kernel's keys": ("keyctl", "0", "-3", "0"),
    "measure the kernel": ("perf_event_open", "buffer(bytes(128))", "0", "-1", "-1", "0"),
    "become dumpable": ("prctl", "4", "1", "0", "0", "0"),
    "change its personality": ("personality", "0x0040000"),
    "clone a process by flags": ("clone", "17", "0", "0", "0", "0"),
}


@dataclass(frozen=True, slots=True)
class Probe:
    """One line of the probe table."""

    act: str
    passed: bool
    said: str


def programs() -> dict[str, str]:
    """The forbidden acts, each as a program whose `act()` tries it and returns "done"."""
    calls = {
        act: f"call({number(words[0], machine())}, {', '.join(words[1:])})"
        for act, words in _SYSTEM_CALLS.items()
        if number(words[0], machine()) is not None
    }
    return {
        act: f"{_RAW}def act():\n    {line}\n    return 'done'\n"
        for act, line in {**_PYTHON, **calls}.items()
    }


def probe(run: Callable[[Job, Limits], Outcome]) -> list[Probe]:
    """Run them all, the honest one first; without it the rest are not tried."""
    honest = run(Expression(HONEST, "answer()"), LIMITS)
    passed = honest.end is End.given and honest.value == HONEST_ANSWER
    table = [Probe("run an honest program with a thread", passed, honest.reason or "right value")]
    if not passed:
        return table
    for act, program in programs().items():
        tried = run(Expression(program, "act()"), LIMITS)
        refused = tried.end in (End.policy, End.crash)
        table.append(Probe(act, refused, tried.reason or f"returned {tried.value!r}"))
    return table


def described(tables: Mapping[str, list[Probe]]) -> str:
    """The probe table as text: what failed, or that all passed, layer by layer."""
    lines: list[str] = []
    for layer, table in tables.items():
        failed = [probe for probe in table if not probe.passed]
        lines.append(f"{layer}: {len(table) - len(failed)} of {len(table)} probes passed")
        lines += [f"    not so: {probe.act} ({probe.said})" for probe in failed]
    return "\n".join(lines)
