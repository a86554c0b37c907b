"""What every section of a recipe shares: frozen, strict fields, and numbers as people write them.

`1e-6` in quotes is a number where a number is wanted. Nothing else is guessed: `true` is no 1,
`010` is neither 8 nor 10, and a word is never a switch.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

#: Decimal only, at most 30 digits before the exponent: no octal, no base 60, no underscores.
NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d{0,29})(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?")
TASK_NAMES = ("addition", "countdown")
GYM_PREFIX = "reasoning_gym/"
LARGEST_WHOLE = 2**53  # every whole number up to here is exact as a float


class Section(BaseModel):
    """One section of a recipe. The docstring under a field is its description."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and NUMBER.fullmatch(value) else value


def _whole(value: Any) -> Any:
    number = _number(value)
    if isinstance(number, float) and number.is_integer() and abs(number) <= LARGEST_WHOLE:
        return int(number)
    return value


def _switch(value: Any) -> Any:
    return bool(value) if type(value) is int and value in (0, 1) else value


def _not_none(value: str) -> str:
    if value == "None":
        raise PydanticCustomError("none_word", "none is written null")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise PydanticCustomError("plain_value", "wanted a finite number, text, true or false")


def _setting(value: Any) -> Any:
    if isinstance(value, list):
        return [_setting(item) for item in value]
    return value if value is None else _plain(value)


def _task_name(value: str) -> str:
    """Which data sets reasoning_gym has is told when it is loaded."""
    if value in TASK_NAMES or value.startswith(GYM_PREFIX):
        return value
    raise PydanticCustomError("task_name", "wanted 'addition', 'countdown' or 'reasoning_gym/NAME'")


def _pair(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_whole)]
Switch = Annotated[bool, BeforeValidator(_switch)]

Positive = Annotated[Number, Field(gt=0)]
NotNegative = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Decay = Annotated[Number, Field(ge=0, lt=1)]
DecayPair = Annotated[tuple[Decay, Decay], BeforeValidator(_pair)]
Count = Annotated[Whole, Field(ge=1)]
CountOrZero = Annotated[Whole, Field(ge=0)]
Seed = Annotated[Whole, Field(ge=0, lt=2**32)]  # 32 bits: what every random generator takes
Text = Annotated[str, Field(min_length=1), AfterValidator(_not_none)]
FileName = Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Plain = Annotated[Any, AfterValidator(_plain)]
Setting = Annotated[Any, AfterValidator(_setting)]  # Plain, or lists of it
TaskName = Annotated[str, AfterValidator(_task_name)]
