"""`import gspo` is cheap, and every public name is found when it is used."""

import subprocess
import sys

import pytest

import gspo


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_the_package_does_not_import_torch():
    code = "import gspo, sys; gspo.ClipRange(3e-4, 4e-4); assert 'torch' not in sys.modules"
    assert run(code).returncode == 0


def test_the_objectives_module_needs_no_import_of_its_own():
    done = run("import gspo; print(*gspo.objectives.OBJECTIVES, gspo.objectives.gspo.__name__)")
    assert done.stdout.split()[::9] == ["gspo", "gspo"]


@pytest.mark.parametrize(
    "name",
    ["gspo_loss", "objective_loss", "Segments", "LogClip", "LengthFairClip", "group_advantage"],
)
def test_public_names_resolve(name):
    assert getattr(gspo, name).__name__ == name


def test_every_public_name_has_a_home_and_is_listed():
    assert set(gspo.__all__) <= set(dir(gspo))
    assert set(gspo.__all__) - {"objectives", "testing"} == set(gspo._HOME)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'gpso_loss'"):
        gspo.gpso_loss  # noqa: B018
