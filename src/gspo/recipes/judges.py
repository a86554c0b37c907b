"""From the `verifier` section to verifiers, and their check on the gold answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gspo.data.gym import GymTask
from gspo.data.tasks import Task
from gspo.errors import RecipeError, VerifierError
from gspo.recipes.schema import Recipe
from gspo.recipes.verifier_section import GraderSection
from gspo.types import Prompt
from gspo.verifiers.base import Verifier, check_prompts
from gspo.verifiers.exact import ExactVerifier
from gspo.verifiers.function import FunctionVerifier, function_pool
from gspo.verifiers.loading import load_function
from gspo.verifiers.math import LIMIT_S, MathSettings, MathVerifier
from gspo.verifiers.parts import Part, WeightedParts
from gspo.verifiers.patterns import FormatVerifier, RegexVerifier
from gspo.verifiers.pool import num_workers
from gspo.verifiers.shaping import LengthVerifier, OverlongPunishment
from gspo.verifiers.strict import StrictlyWatched

#: Gold answers judged before anything is sampled.
NUM_PROBES = 16


@dataclass(frozen=True, slots=True)
class Judges:
    """verifier: whoever gives the reward. strict: the grader beside it. Digests: SHA-256 of the
    functions' files, those of several parts in their order."""

    verifier: Verifier
    strict: Verifier | None
    verifier_digest: str | None
    strict_digest: str | None

    @property
    def together(self) -> Verifier:
        """What the run judges with."""
        if self.strict is None:
            return self.verifier
        return StrictlyWatched(self.verifier, self.strict)

    def check(self, prompts: Sequence[Prompt]) -> int:
        """Every prompt can be judged, and the gold answers of some pass: their number. DataError
        or VerifierError name the first that does not."""
        check_prompts(self.verifier, prompts)
        probed = _probe(self.verifier, prompts, "verifier")
        if self.strict is not None:
            check_prompts(self.strict, prompts)
            _probe(self.strict, prompts, "strict grader")
        return probed


def build_judges(recipe: Recipe, task: Task | GymTask | None) -> Judges:
    """Load functions, prove sandboxes. RecipeError or VerifierError."""
    section = recipe.verifier
    digests: list[str] = []
    max_tokens = recipe.rollout.max_tokens
    verifiers = [build_grader(grader, max_tokens, task, digests) for _, grader in section.graders]
    verifier = verifiers[0]
    if section.parts:
        named = zip(section.parts, verifiers, strict=True)
        verifier = WeightedParts(
            tuple(Part(part.name or part.kind, made, part.weight) for part, made in named)
        )
    strict, strict_digest = _strict(recipe)
    return Judges(verifier, strict, " ".join(digests) or None, strict_digest)


def build_grader(
    section: GraderSection, max_tokens: int, task: Task | GymTask | None, digests: list[str]
) -> Verifier:
    """One verifier. max_tokens: the longest response; digests: a function's is added."""
    match section.kind:
        case "task":
            if task is None:
                raise RecipeError(
                    "verifier.kind is 'task', but the prompts come from a file: set verifier.kind to exact, math, code or function"
                )
            return FunctionVerifier(task.reward, task.name)
        case "exact":
            return ExactVerifier(section.marker)
        case "function":
            verifier, digest = _function(section.function or "", section.limit_s)
            digests.append(digest)
            return verifier
        case "math":
            return MathVerifier(_math_settings(section))
        case "code":
            return _code(section)
        case "regex":
            pattern = section.pattern or ""
            return RegexVerifier(pattern, *([section.limit_s] if section.limit_s else []))
        case "format":
            return FormatVerifier(*([tuple(section.tags)] if section.tags else []))
        case "length":
            return LengthVerifier(section.short_tokens or 0, section.long_tokens or 0)
        case "overlong":
            return OverlongPunishment(max_tokens, section.buffer_tokens or 0)


def _math_settings(section: GraderSection) -> MathSettings:
    return MathSettings(
        place=section.answer_in or "any",
        all_boxes=bool(section.all_boxes),
        strict=bool(section.exact_form),
        limit_s=section.limit_s or LIMIT_S,
    )


def _code(section: GraderSection) -> Verifier:
    """Proves a sandbox, so VerifierError where none holds."""
    from gspo.verifiers.code import CodeSettings, CodeVerifier

    default = CodeSettings()
    settings = replace(
        default,
        sandbox=section.sandbox or default.sandbox,
        num_workers=num_workers(),
        time_limit_s=section.limit_s or default.time_limit_s,
        reward=section.tests_pass or default.reward,
    )
    return CodeVerifier(settings)


def _function(place: str, limit_s: float | None) -> tuple[FunctionVerifier, str]:
    loaded = load_function(place)
    pool = None if limit_s is None else function_pool(place, loaded.sha256, limit_s)
    return FunctionVerifier(loaded.function, place, pool), loaded.sha256


def _strict(recipe: Recipe) -> tuple[Verifier | None, str | None]:
    section = recipe.verifier
    match section.strict:
        case None:
            return None, None
        case "exact":
            return ExactVerifier(section.marker), None
        case "math":
            return MathVerifier(MathSettings(place="box", strict=True)), None
        case place:
            return _function(place, section.limit_s)


def _probe(verifier: Verifier, prompts: Sequence[Prompt], who: str) -> int:
    """Judge the gold answer of some prompts: a verifier that refuses them would only teach noise."""
    passed = 0
    for prompt in prompts[:NUM_PROBES]:
        verdict = verifier.probe(prompt)
        if verdict is None:
            continue
        if verdict.failure is not None:
            raise VerifierError(
                f"the {who} broke on the gold answer of prompt {prompt.id}: {verdict.failure}"
            )
        if verdict.reward is None or verdict.reward <= 0:
            raise VerifierError(
                f"the {who} gives the gold answer of prompt {prompt.id} the reward {verdict.reward}; wanted more than 0. Check the answer column and the verifier with 'gspo verify'"
            )
        passed += 1
    return passed
