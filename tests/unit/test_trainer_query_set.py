"""Which prompts a run draws from, by hand and as a law."""

import json

import pytest
from hypothesis import given, strategies

from gspo.data.stream_order import prompt_places
from gspo.errors import DataError
from gspo.trainer.query_set import QuerySet, Refresh
from tests.unit.test_trainer_dynamic_sampling import group

EVERY = Refresh(every=1)


def measured(queries, *rates):
    """(number, passed, scored) of each prompt."""
    numbers = [number for number, _, _ in rates]
    groups = [group("p", *[1] * passed, *[0] * (scored - passed)) for _, passed, scored in rates]
    return queries.measured(numbers, groups)


def test_what_all_or_none_solve_rests_for_one_period():
    queries = measured(QuerySet.of({}, 6), (0, 0, 4), (1, 4, 4), (2, 1, 4), (3, 2, 4))
    second = queries.refreshed(EVERY, cursor=4, at_least=2)
    assert (second.failed, second.solved, second.start, second.period) == ((0,), (1,), 4, 1)
    drawn = {number for number, _ in second.places(seed=0, cursor=4, count=4)}
    assert drawn == {2, 3, 4, 5}
    third = measured(second, (2, 0, 4)).refreshed(EVERY, cursor=8, at_least=2)
    assert (third.failed, third.solved) == ((2,), ())
    assert {k for k, _ in third.places(0, 8, 5)} == {0, 1, 3, 4, 5}


def test_rates_add_up_over_the_period_and_the_range_is_settable():
    queries = measured(QuerySet.of({}, 4), (0, 1, 4), (0, 3, 4), (1, 1, 8), (2, 7, 8))
    settings = Refresh(every=1, above=0.2, below=0.8)
    found = queries.refreshed(settings, cursor=4, at_least=1)
    assert (found.failed, found.solved) == ((1,), (2,))


def test_a_prompt_without_a_scored_response_stays():
    queries = QuerySet.of({}, 3).measured([0], [group("p", None, None)])
    assert queries.refreshed(EVERY, 1, at_least=1).failed == ()


def test_there_are_always_enough_for_a_step():
    queries = measured(QuerySet.of({}, 4), (0, 0, 4), (1, 4, 4), (2, 0, 4))
    assert queries.refreshed(EVERY, 4, at_least=1).failed == (0, 2)
    assert queries.refreshed(EVERY, 4, at_least=2).failed == ()


def test_before_the_first_refresh_the_order_is_that_of_the_data():
    queries = QuerySet.of({}, 12)
    for cursor in (0, 4, 10):
        assert queries.places(5, cursor, 7) == prompt_places(12, 5, cursor, 7)


def test_another_data_set_is_refused():
    memory = QuerySet.of({}, 12).memory()
    with pytest.raises(DataError, match="query set is of 12 prompts, the data has 13"):
        QuerySet.of(memory, 13)


@given(
    strategies.lists(
        strategies.tuples(
            strategies.integers(0, 7), strategies.integers(0, 4), strategies.integers(4, 8)
        ),
        max_size=20,
    ),
    strategies.booleans(),
)
def test_memory_gives_the_set_back(rates, refresh):
    queries = measured(QuerySet.of({}, 8), *rates)
    if refresh:
        queries = queries.refreshed(EVERY, cursor=9, at_least=2)
    assert QuerySet.of(json.loads(json.dumps(queries.memory())), 8) == queries
    places = queries.places(seed=1, cursor=queries.start, count=20)
    assert not {k for k, _ in places} & {*queries.solved, *queries.failed}


def test_numbers_of_the_set():
    queries = QuerySet(num_prompts=9, solved=(1, 2), failed=(3,))
    assert {name: stat.value() for name, stat in queries.stats().items()} == {
        "queries/active": 6,
        "queries/resting_solved": 2,
        "queries/resting_failed": 1,
    }
