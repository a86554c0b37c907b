"""Tasks of the package reasoning-gym (extra `tasks`): any of its data sets, by name and settings.

    data: {task: reasoning_gym/chain_sum, options: {min_terms: 2, max_terms: 4}}

Questions are its own, and so is the score: from 0 to 1, with part of the reward for some wrong
answers. The answer is what stands in the last <answer>…</answer> of a response, or the whole
response without one. Some of its score functions give the answer to Python's `eval`, or to a parser
that does; for those, an answer that is more than numbers, lists and arithmetic is wrong, unread.
What a score function raises at an answer is a wrong answer too: that it works is shown at start, by
the gold answers.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any

from gspo.data.drawing import distinct_questions
from gspo.data.harmless import is_harmless
from gspo.errors import RecipeError, ResourceError, nearest
from gspo.types import Prompt

PREFIX = "reasoning_gym/"
PACKAGE = "reasoning-gym"
OWN_SETTINGS = ("seed", "size")  # ours to set: from the recipe's seed and data.num_prompts
CHUNK = 500  # questions of one seed: the package's default, which every data set can make
SEEDS = 2**31  # so that seed + number stays below 2**32, the most that numpy takes
ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
EVALUATES = re.compile(r"\b(?:eval|exec|parse_expr|sympify)\(")
#: Data sets whose sources, read in version 0.1.25, evaluate texts of their own and never the answer.
NEVER_THE_ANSWER = frozenset(
    {"basic_arithmetic", "bitwise_arithmetic", "codeio", "number_sorting", "propositional_logic"}
)
MALFORMED = (ArithmeticError, AttributeError, LookupError, NameError, SyntaxError, TypeError)


@dataclass(frozen=True, slots=True)
class GymTask:
    """One data set. evaluates: its score function may run an answer as code, so answers are looked
    at before. scorer: the data set that scores; the questions of others are scored by it too."""

    name: str
    settings: Mapping[str, Any]
    evaluates: bool
    scorer: Any

    @property
    def source(self) -> str:
        """Its name, with the version of the package."""
        return f"{self.name} ({PACKAGE} {version(PACKAGE)})"

    def prompts(self, split: str, count: int, seed: int) -> list[Prompt]:
        """Different questions; a question's split follows from its text, so none is in both.
        `columns["entry"]` is what the score function needs."""
        entries = self._entries(split, seed)
        found = distinct_questions(
            lambda: next(entries), lambda entry: str(entry["question"]), split, count
        )
        return [self._prompt(entry) for entry in found]

    def reward(self, completion: str, entry: Mapping[str, Any]) -> float:
        """The data set's own score of the answer."""
        answer = answer_of(completion)
        if self.evaluates and not is_harmless(answer):
            return 0.0
        try:
            return float(self.scorer.score_answer(answer, dict(entry)))
        except (*MALFORMED, ValueError, RecursionError):
            return 0.0

    def _entries(self, split: str, seed: int) -> Iterator[dict[str, Any]]:
        """Questions without end."""
        for part in itertools.count():
            drawn_from = _drawn_from(self.name, split, seed, part)
            data_set = _data_set(self.name, self.settings, drawn_from)
            yield from (data_set[number] for number in range(CHUNK))

    def _prompt(self, entry: dict[str, Any]) -> Prompt:
        question, answer = str(entry["question"]), entry.get("answer")
        gold = {} if answer is None else {"gold": str(answer)}
        return Prompt(
            id=f"{self.name}/{hashlib.sha256(question.encode()).hexdigest()[:12]}",
            text=question,
            ids=(),
            answer=None if answer is None else str(answer),
            source=self.name,
            columns={"entry": entry, **gold},
        )


def gym_task(name: str, settings: Mapping[str, Any]) -> GymTask:
    """The task `reasoning_gym/NAME`. RecipeError: an unknown name or setting; ResourceError: the
    package is not there."""
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise ResourceError(
            f"data.task is {name!r}, and {PACKAGE} is not installed: pip install 'gspo[tasks]'"
        ) from error
    short = name.removeprefix(PREFIX)
    if short not in DATASETS:
        raise RecipeError(
            f"{PACKAGE} {version(PACKAGE)} has no data set {short!r}; {nearest(short, DATASETS)}"
        )
    data_set, config = DATASETS[short]
    known = [entry.name for entry in fields(config) if entry.name not in OWN_SETTINGS]
    for key in settings:
        if key in OWN_SETTINGS:
            raise RecipeError(
                f"data.options.{key} of {name} is set by gspo: use seed and data.num_prompts"
            )
        if key not in known:
            raise RecipeError(f"task {name} has no setting {key!r}; {nearest(key, known)}")
    source = inspect.getsource(sys.modules[data_set.__module__])
    # A composite scores with other data sets, whose sources are not looked at here.
    evaluates = bool(EVALUATES.search(source)) or short == "composite"
    evaluates = evaluates and short not in NEVER_THE_ANSWER
    return GymTask(name, settings, evaluates, _data_set(name, settings, seed=0))


def _data_set(name: str, settings: Mapping[str, Any], seed: int) -> Any:
    import reasoning_gym

    try:
        return reasoning_gym.create_dataset(
            name.removeprefix(PREFIX), seed=seed, size=CHUNK, **settings
        )
    except (AssertionError, ValueError, TypeError, KeyError) as error:
        raise RecipeError(
            f"{name} refuses data.options {dict(settings)}: {type(error).__name__}: {error}"
        ) from error


def answer_of(completion: str) -> str:
    """The last <answer>…</answer>, else the whole response; without blanks around it.

    >>> answer_of("so <answer>4</answer>, no: <answer> 5 </answer>"), answer_of(" 6 ")
    ('5', '6')
    """
    tagged = ANSWER.findall(completion)
    return str(tagged[-1] if tagged else completion).strip()


def _drawn_from(name: str, split: str, seed: int, part: int) -> int:
    """The seed of a part of the questions: question k of it is made from this + k."""
    digest = hashlib.sha256(f"{name} {split} {seed} {part}".encode()).digest()
    return int.from_bytes(digest[:8], "little") % SEEDS
