"""A whole recipe. The settings of each section are in sections.py and objective_section.py, what they
must agree on is in checks.py.

`model` and `data` come in two kinds each, told apart by `path`: a setting of the other kind is an
error, not ignored.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag, model_validator
from pydantic_core import PydanticCustomError

from gspo.recipes.checks import conflicts
from gspo.recipes.fields import FileName, Section, Seed
from gspo.recipes.objective_section import GSPOSection, ObjectiveSetting
from gspo.recipes.sections import (
    AdvantageSection,
    ColdStartSection,
    EngineSection,
    EvaluateSection,
    FileData,
    NewModel,
    OptimizerSection,
    RecordSection,
    RolloutSection,
    SavedModel,
    TaskData,
    TrainerSection,
)
from gspo.recipes.verifier_section import VerifierSection


def _kind_of_model(value: Any) -> str:
    path = value.get("path") if isinstance(value, dict) else getattr(value, "path", None)
    return "<a new model>" if path is None else "<a saved model>"


def _kind_of_data(value: Any) -> str | None:
    if isinstance(value, TaskData | FileData):
        value = {"task": value.task, "path": value.path}
    if not isinstance(value, dict):
        return None
    has_task, has_path = value.get("task") is not None, value.get("path") is not None
    if has_task == has_path:
        return None
    return "<a task>" if has_task else "<a file>"


class Recipe(Section):
    """A whole run."""

    name: FileName | None = None
    """Name of the run and its folder; null is the recipe file's, numbered where a run has it."""
    seed: Seed = 0
    """Seed of weights, data order and sampling."""
    model: Annotated[
        Annotated[NewModel, Tag("<a new model>")] | Annotated[SavedModel, Tag("<a saved model>")],
        Discriminator(_kind_of_model),
    ] = NewModel()
    """The policy."""
    coldstart: ColdStartSection | None = None
    """Supervised training first; null is none."""
    data: Annotated[
        Annotated[TaskData, Tag("<a task>")] | Annotated[FileData, Tag("<a file>")],
        Discriminator(
            _kind_of_data,
            custom_error_type="kind_of_data",
            custom_error_message="wanted either task (addition, countdown, reasoning_gym/NAME) or path (prompts), "
            "not both; `data={path: FILE}` replaces the whole section",
        ),
    ]
    """The prompts. The one section without a default."""
    verifier: VerifierSection = VerifierSection()
    """Who gives the reward."""
    rollout: RolloutSection = RolloutSection()
    """Sampling."""
    advantage: AdvantageSection = AdvantageSection()
    """From rewards to advantages."""
    objective: ObjectiveSetting = GSPOSection(name="gspo")
    """What is minimised; a name alone is that objective with its own defaults."""
    optimizer: OptimizerSection = OptimizerSection()
    """AdamW."""
    trainer: TrainerSection = TrainerSection()
    """The loop."""
    evaluate: EvaluateSection = EvaluateSection()
    """Held-out accuracy."""
    engine: EngineSection = EngineSection()
    """What samples."""
    record: RecordSection = RecordSection()
    """What is left behind."""

    @model_validator(mode="after")
    def _settings_agree(self) -> Recipe:
        found = list(conflicts(self))
        if found:
            raise PydanticCustomError(
                "conflicts",
                "{text}",
                {"text": "; ".join(text for _, text in found), "conflicts": found},
            )
        return self
