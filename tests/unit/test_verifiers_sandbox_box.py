"""The sandbox as a whole: order, threads, ends, and nothing left."""

import os
import signal
import threading
import time

import pytest

from gspo.errors import GspoWarning, VerifierError
from gspo.verifiers.sandbox import box, canaries, client, zygote
from gspo.verifiers.sandbox.box import Sandbox
from gspo.verifiers.sandbox.job import Call, End, Expression, Limits, Program
from tests import loops
from tests.hostile.core import children, left_behind

LIMITS = Limits(cpu_s=2.0, wall_s=10.0, memory_mib=512)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(2, "kernel") as made:
        yield made


def echo(number):
    return lambda run: run(Call("def f(x): return x", "f", [number]), LIMITS).value


def test_every_canary_was_refused(sandbox):
    assert sandbox.layer == "kernel"
    assert len(sandbox.probes) > 35
    assert all(line.passed for line in sandbox.probes)


def test_results_keep_their_order(sandbox):
    assert sandbox.map([echo(number) for number in range(20)]) == list(range(20))
    assert sandbox.map([]) == []


def test_from_threads_and_an_event_loop(sandbox):
    found = {}
    threads = [
        threading.Thread(target=lambda k=k: found.update({k: sandbox.map([echo(k)] * 3)}))
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [k] * 3 for k in range(4)}

    async def inside():
        return sandbox.map([echo(7)])

    assert loops.run(inside()) == [7]


def test_each_job_is_a_process_of_its_own(sandbox):
    code = "n = [0]\ndef f():\n  n[0] += 1\n  return n[0]"
    assert sandbox.map([lambda run: run(Call(code, "f", []), LIMITS).value] * 3) == [1, 1, 1]


def test_a_job_has_its_five_descriptors_and_nothing_more(sandbox):
    code = "import os\ndef f():\n  found = []\n  for d in range(64):\n    try: os.fstat(d); found.append(d)\n    except OSError: pass\n  return found"
    assert sandbox.run(Call(code, "f", []), LIMITS).value == [0, 1, 2, 4]


def test_a_job_has_no_capability_and_no_environment(sandbox):
    code = "import os\ndef f(): return os.getuid(), os.getgroups(), sorted(os.environ)"
    uid, groups, names = sandbox.run(Call(code, "f", []), LIMITS).value
    assert names == sorted(box.layers.ENVIRONMENT)
    if os.geteuid() == 0:
        assert uid in box._UIDS
        assert groups == []


def test_a_script_reads_and_prints(sandbox):
    ended = sandbox.run(Program("print(input()[::-1])", b"abc\n"), LIMITS)
    assert (ended.end, ended.value) == (End.given, b"cba\n")


def test_an_error_of_the_callers_own_comes_back(sandbox):
    def broken(run):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sandbox.map([broken])
    assert sandbox.map([echo(1)]) == [1]


def test_a_dead_server_is_replaced_and_its_job_done_again():
    with Sandbox(1, "kernel") as sandbox:
        (server,) = sandbox.map([lambda run: run(Expression("", "1"), LIMITS) and children()])
        for pid in server:
            os.kill(pid, signal.SIGKILL)
        assert sandbox.map([echo(5)]) == [5]


def test_a_server_killed_under_its_job_costs_no_verdict():
    with Sandbox(1, "kernel") as sandbox:
        sandbox.map([echo(1)])
        killer = threading.Thread(target=_kill_when_a_job_runs, daemon=True)
        killer.start()
        ended = sandbox.run(Expression("import time; time.sleep(0.5)", "1"), LIMITS)
        killer.join()
        assert (ended.end, ended.value) == (End.given, 1)


def _kill_when_a_job_runs():
    while len(found := children()) < 2:  # the server and its job
        time.sleep(0.01)
    os.kill(found[0], signal.SIGKILL)


def test_a_job_is_heard_before_the_nonsense_that_it_sends(sandbox, monkeypatch):
    """Also when both are read at once, long after: the job was confined, and it is its fault."""
    poll = client._Conversation._poll

    def late(self, timeout_s):
        ready = poll(self, timeout_s)
        return (
            ready if self._control.fileno() in ready else [d for d in ready if d in self._writing]
        )

    monkeypatch.setattr(client._Conversation, "_poll", late)
    ended = sandbox.run(Expression("import os; os.write(4, b'\\xff' * 4)", "1"), LIMITS)
    assert ended.end is End.resource


def test_waiting_for_a_cpu_is_no_wall_time(monkeypatch):
    """By hand: 2 s of CPU time, 5 s of wall time allowed; 11 s ago begun, none used."""
    request = zygote._Request(2.0, 5.0, 512, 1)
    used, threads, waited = 0.0, 1, 0.0
    monkeypatch.setattr(zygote, "_cpu_seconds", lambda pid: used)
    monkeypatch.setattr(zygote, "_num_threads", lambda pid: threads)
    monkeypatch.setattr(zygote, "_waited_seconds", lambda pid: waited)
    monkeypatch.setattr(zygote.time, "monotonic", lambda: 111.0)

    def end(begun):
        return zygote._overstepped(1, request, begun)

    assert (end(107.0), end(105.9)) == ("own", "wall")
    waited = 3.0
    assert (end(103.1), end(102.9)) == ("own", "wall")
    waited = 7.0
    assert (end(101.1), end(100.9)) == ("own", "starved")
    threads = 65
    assert end(110.0) == "threads"
    used = 2.0
    assert end(110.0) == "cpu"


def test_nothing_is_left():
    before = left_behind()
    with Sandbox(2, "kernel") as sandbox:
        sandbox.map([echo(number) for number in range(100)])
        assert len(children()) > 0
    assert left_behind() == before


def test_closing_does_not_wait_for_jobs_that_have_not_begun():
    sandbox = Sandbox(1, "kernel")
    begun, ends = threading.Event(), []

    def many(run):
        for _ in range(1000):
            ends.append(run(Expression("", "1"), LIMITS).end)
            begun.set()

    waiting = threading.Thread(target=lambda: sandbox.map([many]))
    waiting.start()
    begun.wait()
    sandbox.close()
    waiting.join()
    assert ends[0] is End.given
    assert ends[-1] is End.broken


def test_a_closed_sandbox_says_so():
    sandbox = Sandbox(1, "kernel")
    sandbox.close()
    sandbox.close()
    with pytest.raises(VerifierError, match="is closed"):
        sandbox.map([echo(1)])


def test_without_a_sandbox_nothing_runs_and_the_table_is_shown(monkeypatch):
    monkeypatch.setattr(box.layers, "command", lambda layer, uid: ["/nonexistent"])
    with pytest.raises(VerifierError, match="not so: run an honest program") as caught:
        Sandbox(1, "kernel")
    assert caught.value.exit_code == 3
    assert "sandbox: none" in str(caught.value)


def test_a_sandbox_with_a_hole_is_refused(monkeypatch):
    """The canaries themselves: with limits alone, most of them succeed."""
    whole = box.layers.command
    monkeypatch.setattr(box.layers, "command", lambda layer, uid: whole("none", uid))
    with pytest.raises(VerifierError, match="not so: read /etc/passwd"):
        Sandbox(1, "kernel")


def test_none_must_be_named_and_warns():
    with pytest.warns(GspoWarning, match="sandbox is none"):
        made = Sandbox(1, "none")
    with made as sandbox:
        assert sandbox.probes == []
        assert sandbox.map([echo(3)]) == [3]
        spinning = Expression("while True: pass", "1")
        assert sandbox.run(spinning, Limits(0.3, 2.0, 512)).end is End.timeout


def test_a_layer_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(box.layers.shutil, "which", lambda name: None)
    assert box.layers.available() == ["kernel"]
    with pytest.raises(VerifierError, match="runsc is not installed"):
        Sandbox(1, "gvisor")


def test_canaries_are_programs():
    for act, code in canaries.programs().items():
        compile(code, act, "exec")
