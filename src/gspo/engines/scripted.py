"""A public fake engine: it says what it was told to. For tests of everything above an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gspo.engines.base import Sampling
from gspo.errors import DataError, GspoError, nearest
from gspo.types import Finish, Group, Prompt, Rollout, Weights

END_ID = 256  # after the 256 values of a byte
SPELLED_LOGP = -1.0  # nats; any finite number that is not 0, which would be certainty


@dataclass(frozen=True, slots=True)
class ScriptedResponse:
    """What to answer. logp: nats, one a token; None where the engine is to have had none."""

    ids: Sequence[int]
    logp: Sequence[float | None]
    text: str
    finish: Finish = "stop"

    @classmethod
    def spelled(cls, text: str) -> ScriptedResponse:
        """One token a UTF-8 byte and an end token, each of log-prob -1.

        >>> ScriptedResponse.spelled("42").ids
        (52, 50, 256)
        """
        ids = (*text.encode(), END_ID)
        return cls(ids=ids, logp=(SPELLED_LOGP,) * len(ids), text=text)


Script = (
    Callable[[Prompt, int], ScriptedResponse | str] | Mapping[str, Sequence[ScriptedResponse | str]]
)


class ScriptedEngine:
    """Answers sample k of a prompt with `responses(prompt, k)`, or with `responses[prompt.id][k]`.

    A plain string is spelled out as bytes. Seed, step and temperature change nothing; `load` only
    changes the version.

    >>> engine = ScriptedEngine({"sum": ["4", "5"]})
    >>> prompt = Prompt(id="sum", text="2 + 2", ids=[50, 43, 50])
    >>> (group,) = engine.generate([prompt], Sampling(num_samples=2, max_tokens=8))
    >>> [rollout.text for rollout in group.rollouts]
    ['4', '5']
    """

    def __init__(self, responses: Script, version: int = 0) -> None:
        self._responses = responses
        self._version = version
        self._closed = False

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Group]:
        """One group per prompt, in the order given.

        Raises DataError for an answer that is missing, longer than sampling.max_tokens, or has
        not one log-prob a token.
        """
        self._check_open()
        return self._groups(tuple(prompts), sampling)

    def load(self, weights: Weights) -> None:
        """Later rollouts carry this version."""
        self._check_open()
        self._version = weights.version

    def close(self) -> None:
        """Any other call afterwards is an error, as with an engine that holds memory."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise GspoError("this engine is closed; build a new ScriptedEngine to sample again")

    def _groups(self, prompts: Sequence[Prompt], sampling: Sampling) -> Iterator[Group]:
        for prompt in prompts:
            samples = range(sampling.num_samples)
            yield Group(prompt, tuple(self._rollout(prompt, k, sampling) for k in samples))

    def _rollout(self, prompt: Prompt, sample: int, sampling: Sampling) -> Rollout:
        answer = self._answer(prompt, sample)
        response = ScriptedResponse.spelled(answer) if isinstance(answer, str) else answer
        where = f"scripted response {sample} to prompt {prompt.id!r} has {len(response.ids)} tokens"
        if len(response.ids) != len(response.logp):
            raise DataError(f"{where} and {len(response.logp)} log-probs; wanted one a token")
        if len(response.ids) > sampling.max_tokens:
            raise DataError(
                f"{where}, max_tokens is {sampling.max_tokens}; shorten the one, or raise the other"
            )
        return Rollout(
            prompt_ids=tuple(prompt.ids),
            response_ids=tuple(response.ids),
            trained=(True,) * len(response.ids),
            engine_logp=tuple(response.logp),
            text=response.text,
            finish=response.finish,
            version=self._version,
        )

    def _answer(self, prompt: Prompt, sample: int) -> ScriptedResponse | str:
        if not isinstance(self._responses, Mapping):
            return self._responses(prompt, sample)
        if prompt.id not in self._responses:
            raise DataError(
                f"no scripted response for prompt {prompt.id!r}; {nearest(prompt.id, self._responses)}"
            )
        answers = self._responses[prompt.id]
        if sample >= len(answers):
            raise DataError(
                f"prompt {prompt.id!r} has {len(answers)} scripted responses; sample {sample} was asked for (counted from 0)"
            )
        return answers[sample]
