"""Runs that lack something, or whose clip is of another form."""

from __future__ import annotations

import shutil
from pathlib import Path

from gspo.recorders.run_folder import RunFolder
from tests.browser.recorded import GSPO, make_run

#: Objectives that the base run's recipe is rewritten to.
CLIPS = {
    "length-fair": "{name: gspo, kl: null, clip: {length_fair: {low: 0.03, high: 0.04}}}",
    "log-clip": "{name: gmpo, kl: null, clip: {low: 0.001, high: 0.002}}",
}
#: All that are drawn; `EXPLAINED` are not.
DRAWN = ("tokens", "single", *CLIPS, "no-tables")
EXPLAINED = ("empty", "broken")


def make_kinds(folder: Path) -> None:
    """tokens: a token objective. single: one minibatch. no-tables: no Parquet."""
    make_run(folder, "tokens", steps=3, seed=2, token_objective=True, tokenizer=False)
    make_run(folder, "single", steps=3, seed=3, minibatches=1)
    for name, objective in CLIPS.items():
        recipe = shutil.copytree(folder / "b", folder / name) / "recipe.yaml"
        text = recipe.read_text()
        assert GSPO in text
        recipe.write_text(text.replace(GSPO, objective))
    shutil.rmtree(shutil.copytree(folder / "b", folder / "no-tables") / "steps")
    RunFolder.create(folder / "empty", info={}, recipe="name: empty\n").close()
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_text("{half")
