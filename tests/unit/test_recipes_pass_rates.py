"""Pass rates of prompts: by hand, resumed, written."""

import json
from dataclasses import replace

import pytest

from gspo.data.tokenizer import character_tokenizer
from gspo.engines.base import Sampling
from gspo.engines.scripted import ScriptedEngine
from gspo.errors import DataError
from gspo.recipes.load import load_recipe
from gspo.recipes.pass_rate_picture import bar_lines, bins, draw
from gspo.recipes.pass_rates import in_range, measure, places, write_middle
from gspo.recipes.prepare import Prepared
from gspo.types import Prompt, Verdict

PROMPTS = [Prompt(id=f"p{k}", text=f"p{k}", ids=[k], answer=k) for k in range(4)]
SAMPLING = Sampling(num_samples=4, max_tokens=9, stream="prompts")


class BySample:
    """Prompt k is solved by samples 0 to k - 1."""

    def judge(self, prompt, rollouts):
        return [Verdict(float(int(r.text) < prompt.answer)) for r in rollouts]

    def probe(self, prompt):
        return None


@pytest.fixture
def recipe():
    return load_recipe("demo")


@pytest.fixture
def prepared():
    return Prepared(
        tokenizer=character_tokenizer("0123"),
        prompts=PROMPTS,
        held_out=[],
        reports=[],
        verifier=BySample(),
        verifier_digest=None,
        strict_digest=None,
        probed=0,
        context_tokens=99,
        task=None,
    )


class Counting:
    """A scripted engine that may stop early; asked: the prompts of each request."""

    def __init__(self, stop_after=99):
        self.asked, self.stop_after = [], stop_after
        self.inner = ScriptedEngine(lambda prompt, sample: str(sample))

    def generate(self, prompts, sampling):
        self.asked.append([p.id for p in prompts])
        for number, group in enumerate(self.inner.generate(prompts, sampling)):
            if number == self.stop_after:
                raise KeyboardInterrupt
            yield group

    def load(self, weights): ...

    def close(self): ...


def advance(amount=1, note=""): ...


def run(engine, recipe, prepared, path, sampling=SAMPLING):
    return measure(engine, recipe, prepared, sampling, path, advance)


def test_rates_by_hand(recipe, prepared, tmp_path):
    rates = run(Counting(), recipe, prepared, tmp_path / "a.rates.jsonl")
    assert [rate.pass_rate for rate in rates] == [0.0, 0.25, 0.5, 0.75]
    assert [rate.id for rate in rates if in_range(rate, (0.0, 1.0))] == ["p1", "p2", "p3"]
    assert [rate.id for rate in rates if in_range(rate, (0.25, 0.75))] == ["p2"]
    rows = [json.loads(line) for line in (tmp_path / "a.rates.jsonl").read_text().splitlines()]
    assert {row["id"]: row["pass_rate"] for row in rows}["p3"] == 0.75
    assert rows[0]["mean_tokens"] == 2.0


def test_an_interrupted_measurement_goes_on(recipe, prepared, tmp_path):
    path = tmp_path / "a.rates.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(Counting(stop_after=2), recipe, prepared, path)
    path.write_bytes(path.read_bytes() + b'{"id": "p2", "pass_r')  # a kill in the middle of a line
    engine = Counting()
    rates = run(engine, recipe, prepared, path)
    assert engine.asked == [["p2", "p3"]]
    assert rates == run(Counting(), recipe, prepared, tmp_path / "b.rates.jsonl")
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == [
        "p0",
        "p1",
        "p2",
        "p3",
    ]
    again = Counting()
    assert run(again, recipe, prepared, path) == rates
    assert again.asked == []


def test_what_was_measured_otherwise_is_measured_anew(recipe, prepared, tmp_path):
    path = tmp_path / "a.rates.jsonl"
    run(Counting(), recipe, prepared, path)
    engine = Counting()
    run(engine, recipe, prepared, path, Sampling(num_samples=2, max_tokens=9, stream="prompts"))
    assert engine.asked == [["p0", "p1", "p2", "p3"]]
    other = [*PROMPTS[:3], Prompt(id="p3", text="p3", ids=[9], answer=3)]
    prepared = replace(prepared, prompts=other)
    engine = Counting()
    run(engine, recipe, prepared, path, Sampling(num_samples=2, max_tokens=9, stream="prompts"))
    assert engine.asked == [["p3"]]


def test_the_middle_is_written_as_data(recipe, prepared, tmp_path):
    rates = run(Counting(), recipe, prepared, tmp_path / "a.rates.jsonl")
    messages = [{"role": "user", "content": "é"}]
    prompts = [*PROMPTS[:2], Prompt("p2", "[é", [1], messages=messages, columns={"t": [1]})]
    path = tmp_path / "a.middle.jsonl"
    write_middle(path, prompts, rates[:3], (0.0, 1.0), with_columns=True)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"id": "p1", "prompt": "p1", "answer": 1, "pass_rate": 0.25},
        {"t": [1], "id": "p2", "prompt": messages, "pass_rate": 0.5},
    ]


def test_where_the_files_go(tmp_path, monkeypatch, recipe):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_text('{"prompt": "x"}\n')

    def names(*settings, to=None):
        found = places(load_recipe("own-data", ["model.path=/m", *settings]), to)
        return str(found.rates), str(found.middle)

    file = "data.path=data/train.jsonl"
    assert names(file) == ("data/train.rates.jsonl", "data/train.middle.jsonl")
    assert names("data.path=openai/gsm8k") == ("gsm8k.rates.jsonl", "gsm8k.middle.jsonl")
    assert str(places(recipe, None).middle) == "addition.middle.jsonl"
    assert names(file, to=tmp_path / "k.jsonl")[0].endswith("k.rates.jsonl")
    with pytest.raises(DataError, match=r"train\.jsonl holds something else than pass rates"):
        names(file, to=tmp_path / "data" / "train.jsonl")
    with pytest.raises(DataError, match=r"--to is k\.csv, wanted a name that ends in \.jsonl"):
        names(file, to=tmp_path.__class__("k.csv"))


def test_bins_keep_the_two_ends_apart():
    found = bins([0.0, 0.0, 0.25, 0.5, 0.75, 0.75, 1.0], samples=4, above=0.25, below=1.0)
    assert [(b.label, b.count, b.kept) for b in found] == [
        ("0", 2, 0),
        ("0 to 0.33", 1, 0),
        ("0.33 to 0.67", 1, 1),
        ("0.67 to 1", 2, 2),
        ("1", 1, 0),
    ]
    assert bar_lines(found)[0] == "           0       2 " + "." * 50
    assert bar_lines(found)[2] == "0.33 to 0.67       1 " + "#" * 25
    assert bar_lines(bins([], 4, 0, 1))[0] == "           0       0"
    assert len(bins([], 1000, 0, 1)) == 12


def test_the_picture_needs_nothing_else():
    page = draw(bins([0.0, 0.5], 4, 0, 1), "<data>", kept=1)
    assert "&lt;data&gt;: pass rate of 2 prompts, 1 in the range" in page or "<data>" not in page
    assert "src=" not in page.split("<body>")[1][:200]
