"""One rule for the program of a response."""

import pytest

from gspo.verifiers.code_extract import extract_code

GOOD = "```python\ngood\n```"
CASES = {
    "one block": (GOOD, "good\n"),
    "thinking aside": (f"<think>```python\nbad\n```</think> {GOOD[:0]}\n{GOOD}\nso.", "good\n"),
    "the last of two": (f"```python\nbad\n```\n{GOOD}", "good\n"),
    "a text block after it": (f"{GOOD}\n```text\nnotes\n```", "good\n"),
    "an unmarked block after it": (f"{GOOD}\n```\noutput\n```", "good\n"),
    "only unmarked": ("```\nbad\n```\n```\ngood\n```", "good\n"),
    "py": ("```py\ngood\n```", "good\n"),
    "Python3": ("```Python3\ngood\n```", "good\n"),
    "mark with more words": ("```python title=x\ngood\n```", "good\n"),
    "tildes": ("~~~python\ngood\n~~~", "good\n"),
    "longer fence around a shorter": ("````python\n```\ngood\n````", "```\ngood\n"),
    "indented fence": ("  ```python\ngood\n  ```", "good\n"),
    "within a list": (
        "1. so:\n   ```python\n   if x:\n       y\n\n  z\n   ```",
        "if x:\n    y\n\nz\n",
    ),
    "carriage returns": ("```python\r\ngood\r\n```\r\n", "good\n"),
    "thought that never began": (f"bad</think>\n{GOOD}", "good\n"),
    "empty block": ("```python\n```", ""),
    "no fence": ("good", None),
    "other language": ("```java\ngood\n```", None),
    "thought without end": (f"<think>{GOOD}", None),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rule(name):
    text, code = CASES[name]
    assert extract_code(text, ended=True) == code


def test_an_open_block_counts_only_where_the_response_ended_by_itself():
    text = f"```python\nbad\n```\n{GOOD[:-4]}"
    assert extract_code(text, ended=True) == "good\n"
    assert extract_code(text, ended=False) == "bad\n"
