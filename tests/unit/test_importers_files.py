"""Files that are programs are read, never run: Python values, shell words, keys that are unknown."""

import ast

import pytest

from gspo.errors import RecipeError
from gspo.recipes.importers.convert import import_settings
from gspo.recipes.importers.found import Unreadable
from gspo.recipes.importers.openrlhf_source import read_openrlhf
from gspo.recipes.importers.python_values import UnreadableError, constants, value_of
from gspo.recipes.importers.shell_words import commands, plain
from gspo.recipes.importers.trl_source import read_trl
from gspo.recipes.importers.verl_source import read_verl


def value(text):
    *before, last = ast.parse(text).body
    tree = ast.Module(body=before, type_ignores=[])
    return value_of(last.value, constants(tree))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3e-4", 3e-4),
        ("-1", -1),
        ("2**10 - 24", 1000),
        ("7 // 2 + 7 % 2", 4),
        ("not False", True),
        ("A = 8\nB = A * 4\nB / 2", 16.0),
        ("[1, 'a', None]", [1, "a", None]),
        ("{'a': (1, 2)}", {"a": [1, 2]}),
        ("A: int = 3\nA", 3),
        ("torch.bfloat16", "bfloat16"),
        ("if __name__ == '__main__':\n    A = 3\nA", 3),
    ],
)
def test_values_that_the_text_states(text, expected):
    assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "open('x')",
        "f'{1}'",
        "a.b",
        "A = 1\nA = 2\nA",
        "for A in [1, 2]:\n    pass\nA",
        "A = 1\nif x:\n    A = 2\nA",
        "if x:\n    A = 2\nA",
        "A = 1\nA += 1\nA",
        "A = B\nB = A\nA",
        "'a' * 10**9",
        "9 ** 9 ** 9",
        "1 / 0",
        "(-8) ** 0.5",
        "lambda: 1",
        "{**{}}",
        "def A():\n    pass\nA",
        "A = 1\nfrom x import A\nA",
        "A = 1\nimport x as A\nA",
        "A = [1]\nA.append(2)\nA",
        "A = {'a': 1}\nA['a'] = 2\nA",
        "A = 1\nasync def f():\n    async for A in x:\n        pass\nA",
    ],
)
def test_values_that_only_running_would_tell(text):
    with pytest.raises(UnreadableError):
        value(text)


@pytest.fixture
def words(tmp_path):
    """The words of each command of a script."""

    def read(text):
        path = tmp_path / "a.sh"
        path.write_text(text)
        return [[word.text for word in command] for command in commands(path)]

    return read


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("run a=1 \\\n  b='x y' # why\n", [["run", "a=1", "b=x y"]]),
        ("A=3\nrun a=$A b=${A} c=\"${A}x\" d='$A'", [["run", "a=3", "b=3", "c=3x", "d=$A"]]),
        ("run a=${B:-5}", [["run", "a=5"]]),
        ("N=2\nrun a=$((1024 * N + 1)) b=$(((N + 2) * 3))", [["run", "a=2049", "b=12"]]),
        ('A="x=1 \\\n  y=2\n z=3"\nrun $A "$A"', [["run", "x=1", "y=2", "z=3", "x=1   y=2\n z=3"]]),
        ("L=(--a 1 # no\n  --b)\nrun ${L[@]} $L", [["run", "--a", "1", "--b", "--a", "1", "--b"]]),
        ("export A=1; run $A && stop", [["run", "1"], ["stop"]]),
        ("A=a\nA+=b\nrun $A", [["run", "ab"]]),
        ('A=(a)\nA+=(b c)\nrun "${A[@]}"', [["run", "a", "b", "c"]]),
        ("A=a\nA+=(b)\nrun ${A[@]}", [["run", "a", "b"]]),
        ('A=()\nrun "${A[@]}" x', [["run", "x"]]),
        ("cd x && A=1\nrun $A", [["cd", "x"], ["run", "1"]]),
        ("run a=1 2>&1 | tee log", [["run", "a=1"], ["tee", "log"]]),
        ("run a=1 &> log b=2 >>log 2>/dev/null c=3", [["run", "a=1", "b=2", "c=3"]]),
        ("cat <<'E' > x\nA=1\nit's\nE\nrun a", [["cat"], ["run", "a"]]),
        ("cat <<-E\n\tA=1\n\tE\nrun a", [["cat"], ["run", "a"]]),
        ("bash <<E\nrun a\nE", [["bash"], ["run", "a"], ["E"]]),
        ("read A <<< 5; run a", [["read", "A"], ["run", "a"]]),
        ("run a=\"['x','y']\" \"$\" \\$x", [["run", "a=['x','y']", "$", "$x"]]),
        ("", []),
    ],
)
def test_words_of_a_script(words, script, expected):
    assert words(script) == expected


@pytest.mark.parametrize(
    ("script", "hole"),
    [
        ("run a=$HOME", "$HOME"),
        ("run a=$(date +%s)", "$(date +%s)"),
        ('A=$(cd "$(dirname "$0")" && pwd)\nrun a=$A', '$(cd "$(dirname "$0")" && pwd)'),
        ("if x; then\n A=1\nfi\nrun a=$A", "$A"),
        ("A=1\nfor A in 1 2; do\nrun a=$A\ndone", "$A"),
        ("run a=${A//x/y}", "${A//x/y}"),
        ("run a=$((B + 1))", "$((B + 1))"),
        ("A=1\n[ x = y ] && A=2\nrun a=$A", "$A"),
        ("A=1\n[ x = y ] &&\n  cd x && A=2\nrun a=$A", "$A"),
        ("x || A=2\nrun a=$A", "$A"),
        ("A=1\nunset A\nrun a=$A", "$A"),
        ("A=1\nread -r A\nrun a=$A", "$A"),
        ("cat > x <<E\nA=1\nE\nrun a=$A", "$A"),
    ],
)
def test_what_a_script_does_not_state(words, script, hole):
    (found,) = [plain(word) for command in words(script) for word in command if "a=" in word]
    assert isinstance(found, Unreadable)
    assert found.text == f"a={hole}"
    assert hole in found.why


@pytest.mark.parametrize("script", ["run 'x", 'run "x', "run $(x", "run ${x", "run $((1"])
def test_what_is_never_closed(words, script):
    with pytest.raises(RecipeError, match=r"a.sh line 1: .* is never closed"):
        words(script)


@pytest.fixture
def write(tmp_path):
    def written(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "calls no GRPOConfig"),
        ("GRPOConfig(\n", "line 1 is not Python"),
        ("GRPOConfig(1e-6)", "line 1: GRPOConfig has an argument without a name"),
        ("GRPOConfig(**more)", r"line 1: \*\*more hides"),
        ("GRPOConfig(beta=0)\nGRPOConfig(beta=0)", r"2 times \(lines 1, 2\)"),
        ("a = GRPOConfig(beta=0)\na.beta = 1", "line 2: beta is set after the call"),
        ("a = x()\na = GRPOConfig(beta=0)\na.beta = 1", "line 3: beta is set after the call"),
        ("if x:\n  a = GRPOConfig(beta=0)\na.beta *= 2", "line 3: beta is set after the call"),
        ("s.a = GRPOConfig(beta=0)\ns.a.beta = 1", "line 2: beta is set after the call"),
        ("a = GRPOConfig(beta=0)\nb = a\nb.beta = 1", "line 3: beta is set after the call"),
        ("t = GRPOTrainer(args=GRPOConfig(beta=0))\nt.args.beta = 1", "line 2: beta is set"),
        ("a = GRPOConfig(beta=0)\nsetattr(a, 'beta', 1)", r"line 2: setattr\(a, ...\) comes after"),
        (
            "a = GRPOConfig(beta=0)\nb = replace(a, beta=1)",
            r"line 2: replace\(a, ...\) comes after",
        ),
        (
            "a = GRPOConfig(beta=0)\na.set_training(1e-5)",
            r"line 2: set_training\(...\) comes after",
        ),
    ],
)
def test_python_that_is_not_one_call(write, text, message):
    with pytest.raises(RecipeError, match=message):
        read_trl(write("a.py", text))


def test_the_call_under_another_name(write):
    text = "from trl import GRPOConfig as Settings\nSettings(\n  beta=0.5,\n)\n"
    given = read_trl(write("a.py", text)).given
    assert (given["beta"].value, given["beta"].place) == (0.5, "a.py line 3")


def test_another_object_may_be_changed(write):
    text = "a = GRPOConfig(beta=0.5)\nmodel.config.use_cache = False\nb.beta = 1\n"
    assert read_trl(write("a.py", text)).given["beta"].value == 0.5


def test_the_trainers_arguments_without_names(write):
    text = """from trl import *
from trl.rewards import accuracy_reward, get_soft_overlong_punishment
from functools import partial
from lib.rewards import shape
import lib.more as more
a = GRPOConfig(max_completion_length=512)
m = Auto.from_pretrained("models/x", torch_dtype=torch.bfloat16, revision="r")
over = get_soft_overlong_punishment(512, soft_punish_cache=128)
GRPOTrainer(m, [accuracy_reward, over, partial(shape, k=1), more.f, lambda **k: [1]], a)
"""
    found = read_trl(write("a.py", text))
    assert {key: given.value for key, given in found.given.items()} == {
        "max_completion_length": 512,
        "model_name_or_path": "models/x",
        "dtype": "bfloat16",
        "reward_funcs": [
            "accuracy_reward",
            "get_soft_overlong_punishment(512, 128)",
            "lib.rewards.shape",
            "lib.more.f",
            "a.py:reward",
        ],
    }
    lost = [(line.key, line.value) for line in found.lost]
    assert lost == [
        ("from_pretrained(revision)", "'r'"),
        ("reward_funcs: lib.rewards.shape", "partial(shape, k=1)"),
    ]
    recipe = import_settings("trl", write("a.py", text)).recipe
    assert recipe.model.dtype == "bfloat16"
    kinds = [(part.kind, part.function) for part in recipe.verifier.parts]
    assert kinds[2:] == [
        ("function", "lib/rewards.py:shape"),
        ("function", "lib/more.py:f"),
        ("function", "MISSING/reward.py:reward"),
    ]
    assert recipe.verifier.parts[1].buffer_tokens == 128


def test_a_model_loaded_without_a_precision_is_told(write):
    text = "GRPOTrainer(Auto.from_pretrained('x'), args=GRPOConfig(beta=0.0))"
    (line,) = read_trl(write("a.py", text)).lost
    assert line.key == "from_pretrained(dtype)"


def test_python_is_never_run(write, tmp_path):
    mark = tmp_path / "mark"
    text = f"open({str(mark)!r}, 'w')\nfrom trl import GRPOConfig\nGRPOConfig(beta=0.0)\n"
    import_settings("trl", write("a.py", text))
    assert not mark.exists()


def test_a_key_that_is_unknown_names_the_nearest_and_its_line(write):
    path = write("a.py", "GRPOConfig(\n  beta=0.0,\n  epsilon_hi=4e-4,\n)")
    with pytest.raises(
        RecipeError, match=r"a.py line 3: TRL has no setting epsilon_hi .*'epsilon_high'"
    ):
        import_settings("trl", path)
    lost = import_settings("trl", path, lenient=True).report.not_carried
    assert [(n.key, n.value) for n in lost] == [("epsilon_hi", 4e-4)]


def test_a_value_that_cannot_be_read_names_key_and_line(write):
    path = write("a.py", "GRPOConfig(\n  learning_rate=rate(),\n  run_name=name(),\n)")
    with pytest.raises(RecipeError, match=r"^a.py line 2: learning_rate is rate\(\): [^\n]*$"):
        import_settings("trl", path)  # run_name is not carried over, whatever it is
    imported = import_settings("trl", path, lenient=True)
    assert {n.key for n in imported.report.not_carried} == {"learning_rate", "run_name"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "actor_rollout_ref.rollout.temprature=1",
            r"line 1: .*'actor_rollout_ref.rollout.temperature'",
        ),
        (
            "data.train_batch_size=8\ndata.train_batch_size=9",
            "line 2: data.train_batch_size is set twice",
        ),
        ("~data.seed=1 x.y=1", "sets nothing"),
        ("echo hello", "does not start verl.trainer.main_ppo"),
        ("data.seed=1 $EXTRA", r"line 1: \$EXTRA is not stated in the file"),
    ],
)
def test_verl_overrides_that_are_wrong(write, text, message):
    with pytest.raises(RecipeError, match=message):
        import_settings("verl", write("a.txt", text))


def test_a_variable_that_may_hold_settings_stops_even_lenient(write):
    with pytest.raises(RecipeError, match=r"\$EXTRA"):
        import_settings("verl", write("a.txt", "data.seed=1 $EXTRA"), lenient=True)


def test_verl_words_and_references(write):
    text = """
data:
  max_prompt_length: 96
  max_response_length: ${data.max_prompt_length}
  train_batch_size: ${oc.select:other.size,24}
  seed: ${oc.env:SEED}
"""
    given = read_verl(write("a.yaml", text)).given
    assert given["data.max_response_length"].value == 96
    assert given["data.train_batch_size"].value == 24
    assert isinstance(given["data.seed"].value, Unreadable)
    line = "+a.b=1 ++c.d='[1, x]' e.f= g.h={a:\\ 1} $@"
    found = read_verl(write("a.txt", line))
    assert {key: g.value for key, g in found.given.items()} == {
        "a.b": 1,
        "c.d": [1, "x"],
        "e.f": None,
        "g.h": {"a": 1},
    }
    assert [n.key for n in found.lost] == ["$@"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--actor.eps_clip", "--actor.eps_clip has 0 values"),
        ("--actor.eps_clip 1 2", "--actor.eps_clip has 2 values"),
        ("--train.colocate_all yes", "takes no value"),
        ("--actor.policy_loss_type reinforce", "OpenRLHF has ppo and gspo"),
        ("--n_samples_per_prompt 8", r"'rollout.n_samples_per_prompt'"),
        ("python train_ppo_ray.py 8", "belongs to no option"),
        ("train_ppo_ray.py --train.seed 1\ntrain_ppo_ray.py --train.seed 2", "2 times"),
    ],
)
def test_openrlhf_options_that_are_wrong(write, text, message):
    with pytest.raises(RecipeError, match=message):
        import_settings("openrlhf", write("a.sh", text))


def test_openrlhf_values(write):
    text = "--eval.steps -1 --train.seed=7 --actor.adam.betas 0.9 0.95 --algo.kl.use_loss"
    given = {key: g.value for key, g in read_openrlhf(write("a.sh", text)).given.items()}
    assert given == {
        "eval.steps": -1,
        "train.seed": 7,
        "actor.adam.betas": [0.9, 0.95],
        "algo.kl.use_loss": True,
    }


def test_a_key_is_never_shown(write):
    path = write("a.sh", "--logger.wandb.key 5ecret --actor.policy_loss_type gspo")
    report = import_settings("openrlhf", path).report
    assert "5ecret" not in "\n".join(report.lines())


@pytest.mark.parametrize("name", ["a.toml", "none.py", "a.yaml"])
def test_files_that_cannot_be_read(write, tmp_path, name):
    if not name.startswith("none"):
        write(name, "[1]\n")
    with pytest.raises(RecipeError):
        import_settings("trl", tmp_path / name)
