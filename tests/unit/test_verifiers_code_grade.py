"""Verdicts from outcomes, without a sandbox: a scripted runner."""

from gspo.verifiers.code_data import read_tests
from gspo.verifiers.code_grade import grade
from gspo.verifiers.sandbox.job import End, Limits, Outcome

LIMITS = Limits(1.0, 3.0, 512)
TESTS = read_tests([f"assert f({x}) == {x * x}" for x in range(8)], None, "lines")


class Scripted:
    """Runs nothing: f(x) is x * x, but for the outcomes given. Remembers what was asked."""

    def __init__(self, **outcomes):
        self.outcomes = outcomes
        self.asked = []

    def __call__(self, job, limits):
        self.asked.append(job.expression)
        x = int(job.expression[2:-1])
        return self.outcomes.get(f"f{x}", Outcome(End.given, x * x))


def graded(run, rule="all", code="c"):
    return grade(code, TESTS, run, LIMITS, rule, 1e-6)


def test_all_pass():
    run = Scripted()
    given = graded(run)
    assert (given.reward, given.fault, given.num_passed, given.num_run) == (1.0, None, 8, 8)
    assert sorted(run.asked) == [f"f({x})" for x in range(8)]


def test_the_order_is_the_programs_own_and_repeats():
    orders = []
    for code in ("a", "a", "b"):
        run = Scripted()
        graded(run, code=code)
        orders.append(run.asked)
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_all_stops_at_the_first_failure_and_share_does_not():
    run = Scripted(f3=Outcome(End.given, 0))
    given = graded(run)
    assert (given.reward, given.fault) == (0.0, "wrong")
    assert run.asked[-1] == "f(3)"
    assert given.reason == "f(3): gave 0"
    share = graded(Scripted(f3=Outcome(End.given, 0)), "share")
    assert (share.reward, share.fault, share.num_run) == (0.875, "wrong", 8)


def test_the_third_timeout_ends_a_share():
    hangs = {f"f{x}": Outcome(End.timeout, None, "slept") for x in range(5)}
    given = graded(Scripted(**hangs), "share")
    assert given.fault == "timeout"
    assert given.num_run < 8
    assert given.reward == given.num_passed / 8
    assert given.num_run - given.num_passed == 3
    del hangs["f0"], hangs["f1"], hangs["f2"]
    assert graded(Scripted(**hangs), "share").reward == 0.75


def test_each_end_is_its_fault():
    for end in (End.wrong, End.timeout, End.crash, End.resource, End.policy):
        given = graded(Scripted(f3=Outcome(end, None, "why")))
        assert (given.reward, given.fault, given.reason) == (0.0, end.value, "f(3): why")


def test_what_we_broke_is_no_reward_under_either_rule():
    for rule in ("all", "share"):
        given = graded(Scripted(f3=Outcome(End.broken, None, "starved")), rule)
        assert (given.reward, given.fault, given.reason) == (None, None, "starved")


def test_a_value_that_cannot_be_written_is_wrong():
    given = graded(Scripted(f3=Outcome(End.given, [10**5000])))
    assert given.fault == "wrong"
    assert "cannot be written" in given.reason
