"""The sections of a recipe but `objective`: every setting's name, default, unit, and the reason for
the default.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gspo.recipes.fields import (
    Count,
    CountOrZero,
    DecayPair,
    NotNegative,
    Number,
    Plain,
    Positive,
    Section,
    Setting,
    Share,
    Switch,
    TaskName,
    Text,
    Whole,
)

Dtype = Literal["float32", "bfloat16"]


class NewModel(Section):
    """A small Qwen3-shaped model with random weights. Defaults: 0.8 M parameters, a demo's size."""

    path: None = None
    """null: no folder, the model is made from the shape below."""
    hidden: Count = 128
    """Width of the residual stream; a multiple of heads."""
    layers: Count = 4
    """Transformer blocks."""
    heads: Count = 4
    """Query heads; a multiple of kv_heads."""
    kv_heads: Count = 2
    """Key and value heads; fewer than heads halves the cache."""
    intermediate: Count = 384
    """Width inside the MLP; 3 x hidden."""
    max_positions: Count = 256
    """Longest prompt + response, in tokens."""
    dtype: Dtype = "float32"
    """Precision of the weights. float32: bfloat16 moves log s by far more than the paper's range."""
    tokenizer: Text | None = None
    """Folder of a Hugging Face tokenizer; null is one token a character of the task's alphabet."""


class SavedModel(Section):
    """A Hugging Face folder: config, weights, tokenizer."""

    path: Text
    """The folder, relative to where gspo is started."""
    dtype: Dtype = "float32"
    """Precision the weights are loaded in. float32: bfloat16 moves log s by far more than the
    paper's range."""
    tokenizer: Text | None = None
    """Folder of another tokenizer; null is the one in path."""


class ColdStartSection(Section):
    """Supervised training on a task's own demonstrations, before reinforcement learning."""

    steps: Count = 280
    """Optimizer steps; 280 takes the demo's model to where sampling solves 0.37."""
    batch: Count = 128
    """Demonstrations a step."""
    lr: Positive = 2e-3
    """Highest learning rate of AdamW."""
    corruption: Share = 0.2
    """Chance that a step of a demonstration is replaced by a wrong one. It leaves room to learn:
    0.2 over four steps gives 0.8^4 = 0.41."""
    warmup: CountOrZero = 20
    """Optimizer steps in which the rate climbs to lr."""
    cache: Switch = True
    """Keep the finished model and use it again while nothing it depends on has changed."""


class ChatSection(Section):
    """Prompts of text as chat, for a model that was trained on conversations."""

    system: Text | None = None
    """System message in front of every conversation that has none; null is none."""
    options: dict[str, Plain] = Field(default_factory=dict)
    """Variables of the model's chat template, as {enable_thinking: false}."""


class RefreshSection(Section):
    """Rest prompts that teach nothing, by the pass rates of the run's own rollouts."""

    every: Count
    """Steps between two refreshes. A prompt that was sampled since the last and whose pass rate is
    not in the range rests until the next; a step's prompts are always left."""
    above: Share = 0.0
    """Lowest pass rate, itself outside: 0 rests what nobody solved."""
    below: Share = 1.0
    """Highest pass rate, itself outside: 1 rests what everybody solved."""


class PromptsSection(Section):
    """What all kinds of data share."""

    chat: ChatSection | None = None
    """Prompts of text become user messages; null: they are continued as they are, and prompts of
    messages go through the chat template either way. {} has no system message."""
    max_prompt_tokens: Count | None = None
    """Longest prompt, in tokens after the template; null is what the model has room for."""
    overlong: Literal["error", "drop"] = "error"
    """What happens to a longer prompt. Prompts are never cut: drop leaves it out and counts it."""
    only: Text | None = None
    """JSONL file of the prompts to train on, by their id, as `gspo prompts` writes it; null: all.
    Held-out prompts are not filtered."""
    refresh: RefreshSection | None = None
    """Rest prompts that all or none of the responses solve; null: every prompt, in every epoch."""


class TaskData(PromptsSection):
    """Prompts made on the fly."""

    task: TaskName
    """Which task: addition or countdown, which bring demonstrations too, or reasoning_gym/NAME, any
    data set of that package. It brings its own prompts, answers and verifier."""
    path: None = None
    """null: no file."""
    options: dict[str, Setting] = Field(default_factory=dict)
    """Settings of the task, as {digits: 4} of addition; what is left out is the task's default."""
    num_prompts: Count = 4096
    """Training prompts; then they come again in another order. 4096 are never all seen in a demo."""


class FileData(PromptsSection):
    """Prompts from a file (JSONL, JSON, CSV, Parquet, Arrow), a folder, or a data set of the hub."""

    path: Text
    """The training data: a file or folder, relative to where gspo is started, or a hub name."""
    task: None = None
    """null: no task."""
    subset: Text | None = None
    """Configuration of a hub data set that has several, as main; null is its only one."""
    split: Text | None = None
    """Split of a folder or hub data set; null is train. A file has none."""
    columns: dict[str, Text | None] = Field(default_factory=dict)
    """Columns that have other names in the data, ours first: {prompt: question, answer: solution};
    {answer: null} where there are no answers, reward_model.ground_truth for a value inside another.
    Prompts are text or a list of chat messages. Empty: prompt, and answer or verl's."""
    bad_rows: Literal["error", "drop"] = "error"
    """What happens to a row without prompt or answer, or with an id that came before. drop leaves
    it out and counts it."""
    eval_path: Text | None = None
    """Held-out prompts for `evaluate`, as path; null is no evaluation unless eval_split names one."""
    eval_split: Text | None = None
    """Split of eval_path, or of path where that is null."""


class LengthScheduleSection(Section):
    """The longest response grows evenly up to rollout.max_tokens."""

    start: Count
    """Longest response of the first step, in tokens; at most max_tokens."""
    steps: Annotated[Whole, Field(ge=2)]
    """The step that is the first with max_tokens."""


class DynamicSamplingSection(Section):
    """Groups of equal rewards are replaced, as DAPO does (arXiv 2503.14476, section 3.2)."""

    max_factor: Annotated[Number, Field(gt=1, le=100)] = 3.0
    """Most prompts a step may sample, in multiples of rollout.prompts. Then the step is filled with
    groups that teach nothing; a step that has nothing else ends the run."""


class RolloutSection(Section):
    """Sampling of a step's responses."""

    prompts: Count = 32
    """Prompts a step."""
    group: Whole = 8
    """Responses a prompt; each is compared with the others of its group, so at least 2."""
    max_tokens: Count = 64
    """Longest response, in tokens; a longer one is cut off and counts as truncated."""
    length_schedule: LengthScheduleSection | None = None
    """Shorter responses at first; null: max_tokens from the first step on."""
    dynamic_sampling: DynamicSamplingSection | None = None
    """Replace groups whose rewards are all equal by new prompts; null: they stay, and teach
    nothing."""
    temperature: Positive = 1.0
    """Divides the logits, in engine and trainer alike. 1: the policy itself."""
    top_p: Annotated[Number, Field(gt=0, le=1)] = 1.0
    """Keep the likeliest tokens of this total probability; 1 is off: a cut tail is no longer the
    policy that is trained."""
    top_k: CountOrZero = 0
    """Keep this many likeliest tokens; 0 is off."""


class AdvantageSection(Section):
    """From rewards to advantages, inside a group."""

    baseline: Literal["mean", "loo"] = "mean"
    """mean of the group, or of the others (leave one out: unbiased)."""
    scale: Literal["std", "none"] = "std"
    """Divide by the group's standard deviation, as GSPO and GRPO do, or not, as dr_grpo."""


class OptimizerSection(Section):
    """AdamW. One optimizer step a minibatch."""

    lr: NotNegative = 3e-5
    """Learning rate; of 3e-5, 1e-4 and 3e-4 the demo learns best at the first."""
    schedule: Literal["constant", "cosine"] = "constant"
    """constant, or cosine down to 0 just after the last step."""
    warmup_steps: CountOrZero = 0
    """Optimizer steps in which the rate climbs from 0 to lr."""
    betas: DecayPair = (0.9, 0.999)
    """Decay of the two running moments; AdamW's usual ones."""
    eps: Positive = 1e-8
    """Added to the root of the second moment; AdamW's usual one."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay; 0: runs are short and start from a trained model."""
    max_grad_norm: Positive = 1.0
    """Longer gradients are shortened to this norm."""


class TrainerSection(Section):
    """The loop."""

    steps: Count = 80
    """Steps: one rollout batch and `minibatches` optimizer steps each."""
    minibatches: Count = 4
    """Optimizer steps a step; the second and later are off-policy, which is what the clip is for."""
    minibatch_by: Literal["group", "response"] = "group"
    """group: whole groups, prompts are computed once. response: mixed over all groups."""
    max_tokens_per_microbatch: Count = 8192
    """Tokens in one forward pass, prompts included; memory grows with it, gradients do not change."""
    dtype: Literal["model", "bfloat16"] = "model"
    """Precision of the trainer's matrix products. model: that of the weights. bfloat16: faster
    where the processor is; weights, optimizer and log-probs stay as they are, but rounding moves
    log s by far more than the paper's range."""
    old_logp: Literal["auto", "trainer"] = "auto"
    """What the second and later minibatches are compared with. auto: the engine's log-probs where
    they differ from the trainer's by too little to move a clip decision, which is measured at every
    step; else, and with trainer always, one more forward of the trainer."""
    checkpoint_every: CountOrZero | None = None
    """Steps between checkpoints; 0 is only at the end and on interrupt, null is as often as costs
    at most 5 % of the time."""
    keep_checkpoints: Count = 2
    """Newest checkpoints kept; 2, so that one is whole while the other is written."""


class EvaluateSection(Section):
    """pass@1 and pass@k on held-out prompts, at temperature 1."""

    prompts: Count = 256
    """Held-out prompts; 256 give pass@1 to within 0.06."""
    samples: Count = 8
    """Responses a prompt: pass@1 is their mean, pass@k goes up to this k."""
    every: CountOrZero = 0
    """Steps between evaluations; 0 is only before the first and after the last."""


class EngineSection(Section):
    """What samples the responses."""

    kind: Literal["local"] = "local"
    """local: the trainer's own model, in the same process."""
    max_batch: Count = 512
    """Responses sampled side by side; memory of the cache grows with it, samples do not change."""
    dtype: Literal["model", "bfloat16"] = "model"
    """Precision of the weights that sample. model: the trainer's own weights. bfloat16: a copy of
    them, where this machine multiplies it at least 1.2 times as fast, which is measured; memory of
    the copy comes on top, and log s then always takes one more forward of the trainer."""


class RecordSection(Section):
    """What is left behind."""

    folder: Text = "runs"
    """Folder of all runs, relative to where gspo is started."""
    steps: Switch = True
    """Write every response to steps/*.parquet; calibrate and replay read them."""
    to: list[Literal["tensorboard", "wandb", "trackio"]] = Field(default_factory=list)
    """Services that get the metrics too, as files in the run folder; each needs its extra, as
    gspo[tensorboard]. wandb is offline unless WANDB_MODE says online. Empty: the run folder is
    whole without them."""
