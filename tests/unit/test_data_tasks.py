"""Made tasks: their splits, their demonstrations, and their rewards, by the task's own function."""

import math

import pytest

from gspo.data.addition import Addition, answer_of, written
from gspo.data.arithmetic import evaluate
from gspo.data.countdown import Countdown
from gspo.data.tasks import TASKS, Task, make_task
from gspo.data.templates import encode_prompts, response_ids
from gspo.data.tokenizer import character_tokenizer
from gspo.errors import DataError, RecipeError
from gspo.types import Verdict
from gspo.verifiers.function import FunctionVerifier

TASK_SETTINGS = [
    Addition(),
    Addition(digits=1),
    Addition(digits=5),
    Countdown(),
]


def name_of(task):
    return repr(task)


def reward(task, prompt, completion):
    columns = {key: value for key, value in prompt.columns.items() if key != "gold"}
    return task.reward(completion, prompt.answer, **columns)


# -- the chain, by hand


def test_a_chain_by_hand():
    """7+6=13 writes 3 carries 1; 4+2+1=7; 8+9=17; 3+1+1=5."""
    assert written(3847, 1926, [0, 0, 0, 0]) == "760=13;421=07;890=17;311=05;>5773"
    assert written(9999, 1, [0, 0, 0, 0]) == "910=10;901=10;901=10;901=10;>10000"


def test_a_corrupted_step_changes_its_digit_and_keeps_the_carry():
    assert written(3847, 1926, [4, 0, 0, 0]) == "760=17;421=07;890=17;311=05;>5777"
    assert written(3847, 1926, [0, 0, 0, 5]) == "760=13;421=07;890=17;311=00;>0773"


def test_only_the_final_answer_is_compared():
    task = Addition()
    assert task.reward("nonsense>5773", "5773") == 1.0
    assert task.reward(">1>5773", "5773") == 1.0
    for wrong in ("", "5773", ">", ">577", ">05773", ">5773 ", ">5773>", ">5772", "I do not know"):
        assert task.reward(wrong, "5773") == 0.0, wrong
    assert answer_of("no mark") is None
    assert answer_of("a>b>c") == "c"


# -- laws of every task


@pytest.mark.parametrize("task", TASK_SETTINGS, ids=name_of)
def test_it_is_a_task_and_follows_from_its_seed(task):
    assert isinstance(task, Task)
    assert task.prompts("train", 20, seed=3) == task.prompts("train", 20, seed=3)
    assert task.prompts("train", 20, seed=3) != task.prompts("train", 20, seed=4)
    assert task.prompts("train", 20, seed=3)[:5] == task.prompts("train", 5, seed=3)
    assert task.demonstrations(20, seed=3) == task.demonstrations(20, seed=3)
    assert task.demonstrations(20, seed=3) != task.demonstrations(20, seed=4)


@pytest.mark.parametrize("task", TASK_SETTINGS, ids=name_of)
def test_gold_earns_reward_1_fits_the_limit_and_the_vocabulary(task):
    tokenizer = character_tokenizer(task.characters)
    examples = task.demonstrations(500, seed=1, corruption=0.0)
    prompts = task.prompts("train", 30, seed=0)
    for example in examples:
        assert reward(task, example.prompt, example.completion) == 1.0
        assert len(response_ids(example.completion, tokenizer)) <= task.max_response_tokens
    for prompt in prompts:
        assert FunctionVerifier(task.reward, task.name).probe(prompt) == Verdict(1.0)
    assert len(encode_prompts(prompts, tokenizer, max_tokens=20).prompts) == 30


@pytest.mark.parametrize("task", TASK_SETTINGS, ids=name_of)
@pytest.mark.parametrize("corruption", [0.2, 0.5])
def test_corruption_sets_the_rate_of_right_responses(task, corruption):
    """Each step is right with probability 1 - c, and the answer only if every step is."""
    count = 400 if task == Countdown() else 2000
    right = sum(
        reward(task, example.prompt, example.completion)
        for example in task.demonstrations(count, seed=5, corruption=corruption)
    )
    expected = (1 - corruption) ** task.num_steps
    assert abs(right / count - expected) < 3 * math.sqrt(expected * (1 - expected) / count)


def test_the_wrong_digits_are_spread_so_the_greedy_choice_is_right():
    """Shares of the written units digit against the true one: 0.8 right, 0.0222 for each other."""
    counts = [0] * 10
    for example in Addition().demonstrations(4000, seed=2):
        first, second = map(int, example.prompt.text[:-1].split("+"))
        shift = (int(example.completion[5]) - first - second) % 10
        counts[shift] += 1
    assert abs(counts[0] / 4000 - 0.8) < 0.02
    assert all(abs(count / 4000 - 0.2 / 9) < 0.01 for count in counts[1:])


@pytest.mark.parametrize("task", TASK_SETTINGS, ids=name_of)
def test_no_question_is_in_both_splits(task):
    few = task == Addition(digits=1)
    train = task.prompts("train", 30 if few else 100, seed=0)
    held_out = task.prompts("held_out", 2 if few else 20, seed=0)
    examples = task.demonstrations(300, seed=0)

    def questions(prompts):
        return {tuple(sorted(p.text[:-1].replace("=", ",").split("+"))) for p in prompts}

    assert len(questions(train)) == len(train) == len({p.id for p in train})
    assert questions(train).isdisjoint(questions(held_out))
    assert questions(e.prompt for e in examples).isdisjoint(questions(held_out))


def test_about_one_question_in_eight_is_held_out():
    """All 4005 sums of two digits, a swapped pair counted once: 500.6 expected, sd 21."""
    task = Addition(digits=2)
    found = 0
    with pytest.raises(DataError, match="asked for 4005 different held_out questions") as error:
        task.prompts("held_out", 4005, seed=0)
    found = int(str(error.value).split("found ")[1].split(";")[0])
    assert 420 < found < 580


# -- countdown


def test_expressions_by_hand():
    assert evaluate("25+3*7") == (46, [25, 3, 7])
    assert evaluate("(25+3)*7")[0] == 196
    assert evaluate("8-3-2")[0] == 3
    assert evaluate("8/4/2")[0] == 1
    assert evaluate("7/(3/25)")[0] * 3 == 175
    assert evaluate("2*(3+(4-1))")[0] == 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3+",
        "+3",
        "-3",
        "(3",
        "3)",
        "()",
        "3 4",
        "3**4",
        "3//4",
        "2^3",
        "1e3",
        "x",
        "٣",
        "3+4=7",
    ],
)
def test_what_is_no_expression_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        evaluate(text)


@pytest.mark.parametrize(
    ("completion", "right"),
    [
        ("25+(3*7)", 1.0),
        (" 3*7+25\n", 1.0),
        ("46", 0.0),
        ("25+7+7+7", 0.0),
        ("25+3*7+0", 0.0),
        ("25+21", 0.0),
        ("25+3+7", 0.0),
        ("25/(3-3)", 0.0),
        ("__import__('os').system('true')", 0.0),
        ("(" * 100_000, 0.0),
        ("9**9**9", 0.0),
        ("25+(3*7)=46", 0.0),
    ],
)
def test_each_number_once_and_the_target_exactly(completion, right):
    assert Countdown().reward(completion, "46", [3, 7, 25]) == right


# -- settings


def test_messages_name_what_was_given():
    with pytest.raises(RecipeError, match="unknown task 'additon'; did you mean 'addition'"):
        make_task("additon")
    with pytest.raises(RecipeError, match="no setting 'digit'; did you mean 'digits'"):
        make_task("addition", digit=3)
    with pytest.raises(RecipeError, match="digits is 0"):
        make_task("addition", digits=0)
    with pytest.raises(RecipeError, match="unknown split 'test'"):
        Addition().prompts("test", 1, seed=0)
    with pytest.raises(RecipeError, match="corruption is 20.0"):
        Addition().demonstrations(1, seed=0, corruption=20.0)
    with pytest.raises(DataError, match="asked for 100 different train questions and found 4"):
        Addition(digits=1).prompts("train", 100, seed=0)
    assert set(TASKS) == {"addition", "countdown"}
