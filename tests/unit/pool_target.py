"""What the pool's tests run in its workers."""

import ctypes
import os
import signal
import subprocess
import time


def prepare(settings):
    """The function of one job."""
    actions = {
        "echo": lambda job: job["value"],
        "offset": lambda job: settings["offset"],
        "sleep": sleep,
        "pid": lambda job: os.getpid(),
        "parent": lambda job: os.getppid(),
        "raise": raises,
        "exit": lambda job: (_ for _ in ()).throw(SystemExit(3)),
        "deep": deep,
        "nan": lambda job: float("nan"),
        "set": lambda job: {1},
        "spin": spin,
        "ignore": ignore,
        "kill": lambda job: os.kill(os.getpid(), signal.SIGKILL),
        "_exit": lambda job: os._exit(0),
        "segfault": lambda job: ctypes.string_at(0),
        "eat": lambda job: len(bytearray(2**30)),
        "spawn": lambda job: subprocess.Popen(["sleep", "1000"]).poll(),
    }
    return lambda job: actions[job["do"]](job)


def broken(settings):
    raise RuntimeError("this target is broken")


def sleep(job):
    time.sleep(job["s"])
    return job["value"]


def raises(job):
    raise ValueError("no such luck")


def deep(job):
    return deep(job)


def spin(job):
    while True:
        pass


def ignore(job):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    spin(job)
