"""How a job ended, from what was heard of it."""

import signal

import pytest

from gspo.verifiers.sandbox.client import Transcript
from gspo.verifiers.sandbox.ending import outcome
from gspo.verifiers.sandbox.job import End, Expression, Limits, Program

LIMITS = Limits(cpu_s=1.0, wall_s=3.0, memory_mib=512)
CALL, SCRIPT = Expression("", "1"), Program("", b"")
EXIT_1 = 256


def heard(*frames, status=0, end="own", cpu_s=0.1, **more):
    report = {"status": status, "end": end, "cpu_s": cpu_s, "wall_s": 0.2}
    return Transcript(report, ["confined", *frames], **more)


CALLS = {
    "a value": (heard({"value": 3}, status=9, end="asked"), End.given),
    "a value, then its time was over": (heard({"value": 3}, status=9, end="cpu"), End.given),
    "a value and a verdict": (heard({"value": 3, "passed": True}), End.wrong),
    "no plain value": (heard({"value": {"pickle": ""}}), End.wrong),
    "a list": (heard([1]), End.wrong),
    "not sendable": (heard({"unsendable": "value of type X is not plain"}), End.wrong),
    "too large": (heard({"unsendable": "frame has 9 bytes, at most 4 may be sent"}), End.resource),
    "raised": (heard({"raised": "ValueError", "message": "x"}), End.crash),
    "no memory": (heard({"raised": "MemoryError", "message": "x"}), End.resource),
    "not permitted": (heard({"raised": "PermissionError", "message": "x"}), End.policy),
    "exit": (heard({"raised": "SystemExit", "message": "0"}), End.wrong),
    "no value, status 0": (heard(), End.wrong),
    "no value, status 1": (heard(status=EXIT_1), End.crash),
    "CPU time": (heard(status=9, end="cpu"), End.timeout),
    "wall time": (heard(status=9, end="wall"), End.timeout),
    "starved": (heard(status=9, end="starved"), End.broken),
    "kernel's CPU limit": (heard(status=9, cpu_s=1.5), End.timeout),
    "threads": (heard(status=9, end="threads"), End.resource),
    "no plain value, by a telling name": (
        heard({"unsendable": "value of type frame has bytes is not plain"}),
        End.wrong,
    ),
    "killed by someone": (heard(status=9), End.broken),
    "forbidden call": (heard(status=int(signal.SIGSYS)), End.policy),
    "segmentation fault": (heard(status=int(signal.SIGSEGV)), End.crash),
    "nonsense": (heard(nonsense="frame is not strict JSON"), End.wrong),
    "endless frame": (heard(nonsense="frame announces 9 bytes"), End.resource),
}
SCRIPTS = {
    "ended": (heard(), End.given),
    "ended, forged": (heard({"value": 3}), End.given),
    "raised": (heard({"raised": "ValueError", "message": "x"}, status=EXIT_1), End.crash),
    "status 1": (heard(status=EXIT_1), End.crash),
    "forged, then killed": (heard({"value": 3}, status=9, end="cpu"), End.timeout),
    "flooded": (heard(status=9, end="asked", flooded=True), End.resource),
}


@pytest.mark.parametrize("name", CALLS)
def test_of_a_call(name):
    transcript, end = CALLS[name]
    ended = outcome(CALL, transcript, LIMITS)
    assert ended.end is end
    assert (ended.value == 3) is (end is End.given)
    assert bool(ended.reason) is (end is not End.given)


@pytest.mark.parametrize("name", SCRIPTS)
def test_of_a_script(name):
    transcript, end = SCRIPTS[name]
    transcript.stdout += b"out"
    ended = outcome(SCRIPT, transcript, LIMITS)
    assert ended.end is end
    assert ended.value == (b"out" if end is End.given else None)


def test_a_job_that_was_not_confined_has_no_verdict():
    transcript = heard()
    transcript.frames[:] = [{"unconfined": "OSError: no"}]
    ended = outcome(CALL, transcript, LIMITS)
    assert ended.end is End.broken
    assert "OSError: no" in ended.reason


def test_a_reason_is_short_whatever_the_program_sends():
    sent = heard({"raised": "ValueError", "message": "x" * 10**6})
    assert len(outcome(CALL, sent, LIMITS).reason) == 500
