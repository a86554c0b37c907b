"""An allocation that fails, in each of the forms it comes in."""

import pytest
import torch

from gspo.errors import ResourceError, memory_errors


def fails_on_the_cpu():
    torch.empty(2**58, dtype=torch.uint8)


def fails_on_a_gpu():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")


def fails_in_python():
    raise MemoryError


@pytest.mark.parametrize("fail", [fails_on_the_cpu, fails_on_a_gpu, fails_in_python])
def test_it_names_the_setting_its_size_and_what_to_do(fail):
    with (
        pytest.raises(ResourceError, match="while training with trainer.max_tokens 8192") as raised,
        memory_errors("training", "trainer.max_tokens", 8192),
    ):
        fail()
    assert "half of it is 4096" in str(raised.value)
    assert raised.value.exit_code == 5
    assert raised.value.__cause__ is not None


def test_half_of_one_is_one():
    with pytest.raises(ResourceError, match="half of it is 1"), memory_errors("x", "y", 1):
        fails_in_python()


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), ValueError("no"), OSError(12)])
def test_any_other_error_stays_itself(error):
    with pytest.raises(type(error)) as raised, memory_errors("training", "size", 2):
        raise error
    assert raised.value is error
