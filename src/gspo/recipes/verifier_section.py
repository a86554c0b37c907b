"""The `verifier` section: who gives the reward, alone or as a weighted sum of parts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gspo.recipes.fields import (
    Count,
    CountOrZero,
    FileName,
    Number,
    Positive,
    Section,
    Share,
    Switch,
    Text,
)

Kind = Literal["task", "exact", "function", "math", "code", "regex", "format", "length", "overlong"]

#: Setting -> the kinds it goes with.
SETTINGS_OF: dict[str, tuple[Kind, ...]] = {
    "function": ("function",),
    "limit_s": ("function", "math", "code", "regex"),
    "marker": ("exact",),
    "answer_in": ("math",),
    "all_boxes": ("math",),
    "exact_form": ("math",),
    "sandbox": ("code",),
    "tests_pass": ("code",),
    "pattern": ("regex",),
    "tags": ("format",),
    "short_tokens": ("length",),
    "long_tokens": ("length",),
    "buffer_tokens": ("overlong",),
}
#: Kind -> settings it cannot do without.
NEEDED: dict[Kind, tuple[str, ...]] = {
    "function": ("function",),
    "regex": ("pattern",),
    "length": ("short_tokens", "long_tokens"),
    "overlong": ("buffer_tokens",),
}


class GraderSection(Section):
    """One verifier. null is a kind's own default; a setting of another kind is an error."""

    kind: Kind = "task"
    """task: the task's own. exact: the text equals the answer column. math: the final answer equals
    it as mathematics. code: the program passes the tests. function: yours. regex, format: the form
    of the response. length, overlong: its length in tokens."""
    function: Text | None = None
    """function: file.py:name of a function (prompt, completion, **columns) -> float."""
    limit_s: Positive | None = None
    """Seconds before a verdict is given up and its process killed. function: of one call, in worker
    processes; null is none, in this process. math: 1.8. regex: 1. code: of processor time a test, 5."""
    marker: Text | None = None
    """exact: text the final answer follows, as '####'; null is the whole response."""
    answer_in: Literal["any", "box", "tag", "hash", "phrase", "bare"] | None = None
    """math: where the final answer stands. box: the last \\boxed. tag: <answer>. hash: behind ####.
    phrase: behind "the answer is". bare: the whole response. any, the default, is the first of these
    that is there."""
    all_boxes: Switch | None = None
    """math: all boxes together are the answer, as a list; by default the last one alone is."""
    exact_form: Switch | None = None
    """math: decimals, units and percent signs as in the answer column; by default 0.33333 is 1/3, and
    a unit on one side is dropped."""
    sandbox: Literal["auto", "gvisor", "bubblewrap", "kernel", "none"] | None = None
    """code: auto, the default, is the strongest that works here; none runs programs unconfined."""
    tests_pass: Literal["all", "share"] | None = None
    """code: 1 when all tests pass, which is the default, or the share that does."""
    pattern: Text | None = None
    """regex: what the response must hold; `.` matches line breaks."""
    tags: list[FileName] | None = None
    """format: the sections of a response, in order; by default [think, answer]."""
    short_tokens: CountOrZero | None = None
    """length: up to here the reward is 1."""
    long_tokens: CountOrZero | None = None
    """length: from here on it is 0."""
    buffer_tokens: Count | None = None
    """overlong: tokens before rollout.max_tokens in which the punishment grows from 0 to -1."""


class PartSection(GraderSection):
    """One term of a sum."""

    weight: Number = 1.0
    """What its reward is multiplied with."""
    name: FileName | None = None
    """Of its entry among the recorded parts; null is its kind."""


class VerifierSection(GraderSection):
    """Who gives the reward."""

    parts: list[PartSection] = Field(default_factory=list)
    """Several verifiers: the reward is the sum of weight x reward, and each is on record. Instead of
    kind."""
    strict: Text | None = None
    """A stricter grader, never trained on: file.py:name of a function, exact, or math (in a box, in
    exact form). Its reward is recorded beside the other, and an alarm tells when the two part; null
    is none."""
    max_failed_share: Share = 0.02
    """Share of the last 500 verdicts that may break before the run stops. A broken verdict
    is left out, never a reward of 0; above 1 in 50 something is wrong with the verifier."""

    @property
    def graders(self) -> list[tuple[str, GraderSection]]:
        """Every verifier that gives reward, and its place in the recipe."""
        if not self.parts:
            return [("verifier", self)]
        return [(f"verifier.parts.{index}", part) for index, part in enumerate(self.parts)]
