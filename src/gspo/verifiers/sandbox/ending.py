"""From what was heard of a job to how it ended. The value decides; then who caused that none came.

Only the server's report is believed: the status it reaped, the times it measured. What the job
itself sent can become a value, or the words of a reason.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from gspo.verifiers.sandbox.client import Transcript
from gspo.verifiers.sandbox.job import End, Job, Limits, Outcome, Program
from gspo.verifiers.sandbox.values import decode

MAX_REASON_CHARACTERS = 500  # a program may send megabytes of them

_RAISED = {
    "MemoryError": End.resource,
    "PermissionError": End.policy,
    "SystemExit": End.wrong,
}


def outcome(job: Job, heard: Transcript, limits: Limits) -> Outcome:
    """How the job ended, with its times."""
    end, value, reason = _judged(job, heard, limits)
    report, reason = heard.report, reason[:MAX_REASON_CHARACTERS]
    return Outcome(end, value, reason, cpu_s=report["cpu_s"], wall_s=report["wall_s"])


def _judged(job: Job, heard: Transcript, limits: Limits) -> tuple[End, Any, str]:
    if not heard.frames or heard.frames[0] != "confined":
        said = heard.frames[0] if heard.frames else f"wait status {heard.report['status']}"
        return End.broken, None, f"the job was not confined, and did not run: {said}"
    if heard.flooded:
        return End.resource, None, f"more than {limits.max_stdout_bytes} bytes of output"
    if heard.nonsense is not None:
        return _nonsense(heard.nonsense)
    reply = heard.frames[1] if len(heard.frames) > 1 else None
    if isinstance(job, Program):
        return _of_script(heard, reply, limits)
    return _by_report(heard, limits) if reply is None else _of_reply(reply)


def _nonsense(said: str) -> tuple[End, Any, str]:
    if "announces" in said:
        return End.resource, None, f"the value is too large: {said}"
    return End.wrong, None, f"no value but {said}"


def _of_script(heard: Transcript, reply: Any, limits: Limits) -> tuple[End, Any, str]:
    """A script's value is its stdout, once it has ended with status 0."""
    if heard.report["status"] == 0:
        return End.given, bytes(heard.stdout), ""
    if reply is not None and heard.report["end"] == "own":
        return _of_reply(reply)
    return _by_report(heard, limits)


def _of_reply(reply: Any) -> tuple[End, Any, str]:
    match reply:
        case {"value": data, **rest} if not rest:
            try:
                return End.given, decode(data), ""
            except ValueError as error:
                return End.wrong, None, f"no plain value: {error}"
        case {"raised": str(name), "message": str(message)}:
            return _RAISED.get(name, End.crash), None, f"raised {message}"
        case {"unsendable": str(why)}:
            return (End.resource if why.startswith("frame has") else End.wrong), None, why
        case _:
            return End.wrong, None, "a reply of no known form"


def _by_report(heard: Transcript, limits: Limits) -> tuple[End, Any, str]:
    """No value came: the server's report tells why."""
    status, end = heard.report["status"], heard.report["end"]
    if end == "starved":
        return End.broken, None, f"the machine gave it no CPU within {limits.wall_s:g} s"
    if end == "cpu":
        return End.timeout, None, f"used its {limits.cpu_s:g} s of CPU time"
    if end == "wall":
        return End.timeout, None, f"waited or slept until its {limits.wall_s:g} s were over"
    if end == "threads":
        return End.resource, None, "too many threads"
    if end == "asked":
        return End.wrong, None, "sent what no honest program sends"
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        return (End.crash if code else End.wrong), None, f"exit status {code} without a value"
    number = os.WTERMSIG(status)
    if number == signal.SIGSYS:
        return End.policy, None, "a system call that the sandbox forbids"
    if number in (signal.SIGKILL, signal.SIGXCPU) and heard.report["cpu_s"] >= limits.cpu_s:
        return End.timeout, None, f"used its {limits.cpu_s:g} s of CPU time"
    if number == signal.SIGKILL:
        return End.broken, None, "killed from outside, perhaps because the machine's memory ended"
    return End.crash, None, f"ended by signal {signal.Signals(number).name}"
