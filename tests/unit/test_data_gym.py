"""Tasks of reasoning-gym: any data set, its own score, nothing run as code."""

import inspect
import sys

import pytest

from gspo.data.gym import EVALUATES, NEVER_THE_ANSWER, answer_of, gym_task
from gspo.errors import RecipeError

pytest.importorskip("reasoning_gym", reason="the extra `tasks` is not installed")

#: Data sets whose score functions hand an answer to eval or to sympy's parser, by their sources.
RUNS_ANSWERS = (
    "binary_matrix",
    "countdown",
    "intermediate_integration",
    "n_queens",
    "polynomial_multiplication",
    "puzzle24",
    "simple_integration",
    "spiral_matrix",
    "string_insertion",
)


@pytest.fixture(scope="module")
def sums():
    return gym_task("reasoning_gym/chain_sum", {"min_terms": 2, "max_terms": 3})


def test_prompts_are_seeded_distinct_and_split_by_their_text(sums):
    train, held_out = sums.prompts("train", 40, seed=3), sums.prompts("held_out", 10, seed=3)
    questions = [p.text for p in [*train, *held_out]]
    assert len(set(questions)) == 50
    assert [p.text for p in sums.prompts("train", 40, seed=3)] == questions[:40]
    assert [p.text for p in sums.prompts("train", 10, seed=3)] == questions[:10]
    assert questions[:40] != [p.text for p in sums.prompts("train", 40, seed=4)]
    other = {p.text for p in sums.prompts("train", 40, seed=4)}
    assert not other & {p.text for p in held_out}


def test_the_gold_answer_earns_1_and_no_answer_nothing(sums):
    for prompt in sums.prompts("train", 5, seed=0):
        entry = prompt.columns["entry"]
        assert prompt.answer == prompt.columns["gold"] == entry["answer"]
        assert sums.reward(f"so <answer>{prompt.answer}</answer>", entry) == 1.0
        assert sums.reward(prompt.answer, entry) == 1.0
        assert sums.reward("I do not know", entry) < 0.5


def test_the_last_tagged_answer_counts():
    assert answer_of("<answer>1</answer> no <answer>\n2\n</answer> end") == "2"
    assert answer_of(" 3 ") == "3"
    assert answer_of("<answer>4") == "<answer>4"


def test_more_questions_than_one_part_holds():
    task = gym_task("reasoning_gym/chain_sum", {})
    assert len({p.text for p in task.prompts("train", 1200, seed=0)}) == 1200


@pytest.mark.parametrize("name", RUNS_ANSWERS)
def test_an_answer_is_never_run(name, tmp_path):
    """The gold answer still earns the reward; code earns nothing and leaves nothing behind."""
    task = gym_task(f"reasoning_gym/{name}", {})
    assert task.evaluates
    (prompt,) = task.prompts("train", 1, seed=0)
    entry, trace = prompt.columns["entry"], tmp_path / "ran"
    for code in (
        f"__import__('pathlib').Path('{trace}').touch()",
        f"[__import__('pathlib').Path('{trace}').touch()]",
        f"<answer>open('{trace}', 'w')</answer>",
    ):
        assert task.reward(code, entry) == 0.0
        assert not trace.exists()
    if "gold" in prompt.columns:
        assert task.reward(prompt.columns["gold"], entry) == 1.0


def test_every_source_that_evaluates_is_either_guarded_or_was_read():
    from reasoning_gym.factory import DATASETS

    evaluating = {
        name
        for name, (data_set, _) in DATASETS.items()
        if EVALUATES.search(inspect.getsource(sys.modules[data_set.__module__]))
    }
    assert evaluating == NEVER_THE_ANSWER | set(RUNS_ANSWERS)


def test_what_a_score_function_raises_is_a_wrong_answer():
    task = gym_task("reasoning_gym/prime_factorization", {})
    (prompt,) = task.prompts("train", 1, seed=0)
    assert task.reward("not numbers", prompt.columns["entry"]) == 0.0
    assert task.reward(prompt.columns["gold"], prompt.columns["entry"]) == 1.0


@pytest.mark.parametrize("name", ["gsm_symbolic", "word_ladder", "acre", "knights_knaves"])
def test_data_sets_that_need_a_size_they_can_make(name):
    assert len(gym_task(f"reasoning_gym/{name}", {}).prompts("train", 2, seed=0)) == 2


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("chain_sums", {}, "has no data set 'chain_sums'; did you mean 'chain_sum'"),
        ("chain_sum", {"min_term": 2}, "no setting 'min_term'; did you mean 'min_terms'"),
        ("chain_sum", {"seed": 1}, r"data\.options\.seed of .* is set by gspo"),
        ("chain_sum", {"min_terms": 0}, r"refuses data\.options .*AssertionError: min_terms"),
        ("composite", {}, "refuses data.options .*Must specify at least one dataset"),
    ],
)
def test_names_and_settings_that_are_wrong(name, settings, message):
    with pytest.raises(RecipeError, match=message):
        gym_task(f"reasoning_gym/{name}", settings)
