"""A whole run: data, cold start, evaluation before, the loop, evaluation after."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from gspo.errors import DataError, GspoError, RecipeError
from gspo.policy.hf import HFPolicy
from gspo.policy.model import load_model, save_model
from gspo.policy.optimizer import load_optimizer, save_optimizer
from gspo.recipes import build
from gspo.recipes.guards import guards
from gspo.recipes.load import to_yaml
from gspo.recipes.naming import run_folder_of
from gspo.recipes.precision import sampling_precision
from gspo.recipes.prepare import Prepared, prepare
from gspo.recipes.schema import Recipe
from gspo.recorders.base import ResponseRow
from gspo.recorders.console import ConsoleRecorder
from gspo.recorders.reader import Run, open_run
from gspo.recorders.run_folder import RunFolder, refuse_content
from gspo.recorders.services import mirrors
from gspo.stats import Mean, Statistic
from gspo.trainer.checkpoint import Checkpoint, CheckpointStore
from gspo.trainer.clip_control import ClipEvent
from gspo.trainer.evaluate import evaluate
from gspo.trainer.interrupt import stop_on_signals
from gspo.trainer.loop import run_loop
from gspo.trainer.parts import Parts
from gspo.trainer.reward_parts import part_stats
from gspo.trainer.state import TrainState
from gspo.trainer.strict import strict_stats
from gspo.trainer.watch import Watch

#: Share of the run's time that checkpoints may take where the recipe leaves their number open.
SAVE_SHARE = 0.05


def train(
    recipe: Recipe,
    *,
    resume: Path | None = None,
    console: ConsoleRecorder | None = None,
) -> Run:
    """Train, and return the run folder, read.

    resume: continue this run folder after its newest whole checkpoint. Ctrl-C and SIGTERM end the
    run after the step in hand and raise KeyboardInterrupt; what was recorded is intact and a
    checkpoint is there.

    Raises: RecipeError, DataError, VerifierError before a model is built; VerifierError,
    NumericsError, ResourceError while training.
    """
    console = console or ConsoleRecorder(recipe.trainer.steps)
    with ExitStack() as stack:
        stack.callback(console.close)
        session = Session(recipe, prepare(recipe), console, resume)
        stack.callback(session.close)
        try:
            return session.run()
        except GspoError as error:
            session.stopped(str(error))
            raise
        except KeyboardInterrupt:
            session.interrupted()
            raise


class Session:
    """One process's part of a run."""

    def __init__(
        self, recipe: Recipe, prepared: Prepared, console: ConsoleRecorder, resume: Path | None
    ) -> None:
        self._recipe = recipe
        self._prepared = prepared
        self._console = console
        path = resume or run_folder_of(recipe)
        if resume is None:
            refuse_content(path)
        self._checkpoints = CheckpointStore(path / "checkpoints", recipe.trainer.keep_checkpoints)
        self._last_save_s, self._last_save_took_s = time.monotonic(), 0.0
        start = self._checkpoints.latest(console.note) if resume else None
        if resume and start is None:
            raise DataError(
                f"{resume} has no checkpoint to resume from; train it anew under another name"
            )
        self._state = start.state() if start else TrainState(seed=recipe.seed)
        if self._state.step >= recipe.trainer.steps:
            raise RecipeError(
                f"{resume} finished its {self._state.step} steps; set trainer.steps above that to go on"
            )
        model, origin = self._start_model(start)
        self._model = model
        self._policy = build.build_policy(recipe, model)
        if start and start.step > 0:
            load_optimizer(self._policy.optimizer, start.folder)
        info = run_info(recipe, prepared, model, origin)
        text = to_yaml(recipe)
        self._folder = (
            RunFolder.resume(path, step=self._state.step, info=info, recipe=text)
            if resume
            else RunFolder.create(path, info=info, recipe=text)
        )
        self._recorded = self._state.step
        self._mirrors = mirrors(recipe.record.to, path, self._mirror_failed)
        self._watch = Watch([self._folder, console, *self._mirrors])
        if resume:
            recorded = open_run(path)
            self._watch.catch_up(recorded.metrics(), recorded.events())
        self._precision = sampling_precision(recipe, model)
        self._engine = build.build_engine(
            recipe, prepared, model, self._precision.dtype if self._precision else "model"
        )
        self._engine.load(self._policy.weights(self._state.version))

    def run(self) -> Run:
        """From the state to the end."""
        for report in self._prepared.reports:
            for line in report.lines():
                self._console.note(line)
        for guard in guards(self._recipe):
            self._folder.event("guard", step=self._state.step, rule=guard.rule, text=guard.text)
            self._console.note(f"note: {guard.text}")
        self._folder.event(
            "paths",
            step=self._state.step,
            update=self._policy.path,
            sampling=self._engine.path,
        )
        if self._precision is not None:
            self._folder.event("precision", step=self._state.step, **self._precision.evidence())
            self._console.note(self._precision.text)
        if self._state.step == 0:
            self._save(self._state)
            self._evaluate(0)
        with stop_on_signals() as stop:
            state = run_loop(self._parts(), self._state, stop)
        if state.step < self._recipe.trainer.steps:
            self._console.note(f"stopped after step {state.step}")
            raise KeyboardInterrupt
        self._evaluate(state.step)
        self._close_mirrors()
        self._folder.finished(state.step)
        self._folder.close()
        return open_run(self._folder.path)

    def stopped(self, reason: str) -> None:
        """Say in the run folder why the run ended early."""
        self._folder.event("stopped", step=self._recorded, reason=reason)

    def interrupted(self) -> None:
        """Say how to go on."""
        self._console.note(
            f"interrupted; {self._folder.path} is intact, 'gspo train {self._folder.path} --resume' continues after its last checkpoint"
        )

    def close(self) -> None:
        """Give up the run folder and the engine."""
        self._engine.close()
        self._close_mirrors()
        self._folder.close()

    def _start_model(self, start: Checkpoint | None) -> tuple[PreTrainedModel, str]:
        if start:
            dtype = build.torch_dtype(self._recipe)
            return load_model(start.model, dtype), open_run(start.folder.parent.parent).info[
                "model"
            ]
        steps = self._recipe.coldstart.steps if self._recipe.coldstart else 0
        with self._console.progress("cold start", steps) as advance:
            return build.build_model(
                self._recipe, self._prepared, lambda step, loss: advance(1, f"loss {loss:.3f}")
            )

    def _parts(self) -> Parts:
        recipe = self._recipe
        return Parts(
            plan=build.build_plan(recipe),
            stream=build.build_stream(recipe, self._engine, self._prepared.prompts),
            verifier=self._prepared.verifier,
            policy=self._policy,
            reference=self._reference(),
            engine=self._engine,
            clip=build.build_clip(recipe, self._state),
            record=self._record,
            evaluate=self._evaluate,
            save=self._save,
            save_due=self._save_due,
        )

    def _reference(self) -> HFPolicy | None:
        """The starting model, frozen, where a KL penalty needs it."""
        if self._recipe.objective.kl is None:
            return None
        first = self._checkpoints.list()[0]
        model = load_model(first.model, build.torch_dtype(self._recipe))
        return build.build_policy(self._recipe, model)

    def _record(
        self,
        step: int,
        stats: Mapping[str, Statistic],
        rows: Sequence[ResponseRow],
        event: ClipEvent | None,
    ) -> None:
        if event is not None:
            self._folder.event(event.kind, step=step, **event.evidence)
            self._console.note(f"step {step}: {event.text}")
        stats = {**stats, **part_stats(rows)}
        if self._recipe.verifier.strict is not None:
            stats |= strict_stats(rows)
        self._folder.step(step, stats, rows if self._recipe.record.steps else [])
        self._recorded = step
        for recorder in (self._console, *self._mirrors):
            recorder.step(step, stats, rows)
        self._watch.step(step, stats, event)

    def _evaluate(self, step: int) -> None:
        prompts = self._prepared.held_out
        if not prompts or step in self._folder_evals():
            return
        sampling = build.eval_sampling(self._recipe)
        with self._console.progress(f"evaluate step {step}", 2 * len(prompts)) as advance:
            result = evaluate(
                self._engine, self._prepared.verifier, prompts, sampling, lambda: advance(1)
            )
        self._folder.evaluation(step, result.groups, result.greedy_groups)
        low, high = result.interval
        stats: dict[str, Statistic] = {n: Mean(v, 1) for n, v in result.numbers().items()}
        self._folder.event(
            "evaluated",
            step=step,
            num_prompts=result.num_prompts,
            interval=[low, high],
            unscored=result.unscored,
            **result.numbers(),
        )
        self._folder.step(step, stats, [])
        for recorder in (self._console, *self._mirrors):
            recorder.step(step, stats, [])
        self._watch.evaluated(step, {"num_prompts": result.num_prompts, **result.numbers()})

    def _mirror_failed(self, name: str, reason: str) -> None:
        self._folder.event("recorder_failed", step=self._recorded, recorder=name, reason=reason)
        self._console.note(
            f"{name} failed ({reason}); it gets nothing more of this part of the run. The run goes on, and its folder has everything"
        )

    def _close_mirrors(self) -> None:
        """Before the folder, in which a failure is told."""
        for mirror in self._mirrors:
            mirror.close()

    def _folder_evals(self) -> list[int]:
        return open_run(self._folder.path).evals()

    def _save(self, state: TrainState) -> None:
        start_s = time.monotonic()

        def write(draft: Path) -> None:
            save_model(self._model, self._prepared.tokenizer, draft / "model")
            save_optimizer(self._policy.optimizer, draft)

        self._checkpoints.save(state, write)
        self._last_save_s = time.monotonic()
        self._last_save_took_s = self._last_save_s - start_s

    def _save_due(self, step: int) -> bool:
        every = self._recipe.trainer.checkpoint_every
        if every is not None:
            return every > 0 and step % every == 0
        return (time.monotonic() - self._last_save_s) * SAVE_SHARE > self._last_save_took_s


def run_info(
    recipe: Recipe, prepared: Prepared, model: PreTrainedModel, origin: str
) -> dict[str, Any]:
    """What run.json says: versions, seed, digests, dtype, back ends."""
    packages = ("gspo", "torch", "transformers", "tokenizers", "datasets", "pyarrow")
    return {
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "seed": recipe.seed,
        "model": origin,
        "num_parameters": sum(p.numel() for p in model.parameters()),
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": str(model.device),
        "engine": recipe.engine.kind,
        "num_threads": torch.get_num_threads(),
        "num_prompts": len(prepared.prompts),
        "num_held_out": len(prepared.held_out),
        "num_dropped_prompts": prepared.num_dropped,
        "data": [report.record() for report in prepared.reports],
        "data_digest": prepared.data_digest(),
        "tokenizer_digest": prepared.tokenizer_digest(),
        "verifier_digest": prepared.verifier_digest,
        "strict_digest": prepared.strict_digest,
    }
