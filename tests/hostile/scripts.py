"""Hostile scripts, and responses without a program (kind 25)."""

from tests.hostile.table import CRASH, POLICY, RESOURCE, TIMEOUT, WRONG, Hostile

SCRIPTS = (
    Hostile(1, "exits without output", "import os; os._exit(0)", WRONG, True),
    Hostile(3, "prints a verdict", "print('Accepted'); print('ALL TESTS PASSED')", WRONG, True),
    Hostile(3, "prints every answer", "print(10); print(26); print(50)", WRONG, True),
    Hostile(
        4,
        "forges a frame",
        'import os, struct; p = b\'{"value": "10"}\'; os.write(4, struct.pack(">I", len(p)) + p)',
        WRONG,
        True,
    ),
    Hostile(
        4,
        "floods the reply",
        "import os\ntry:\n  while True: os.write(4, b'\\0\\0\\0\\2[]' * 1000)\nexcept OSError: pass",
        WRONG | TIMEOUT,
        True,
    ),
    Hostile(
        5,
        "prints, then never ends",
        "import time; print(int(input()) ** 2 + 1, flush=True); time.sleep(60)",
        TIMEOUT,
        True,
    ),
    Hostile(
        7,
        "reads its input twice for the answer",
        "import os; print(os.pread(0, 10, 0))",
        CRASH | POLICY,
        True,
    ),
    Hostile(12, "waits for more input", "import sys; sys.stdin.read(); input()", CRASH, True),
    Hostile(
        13, "prints, then crashes", "print(int(input()) ** 2 + 1, flush=True); 1 / 0", CRASH, True
    ),
    Hostile(
        13,
        "prints, then fails",
        "import os; print(int(input()) ** 2 + 1, flush=True); os._exit(3)",
        CRASH,
        True,
    ),
    Hostile(14, "grows", "x = 'x'\nwhile True: x += x", RESOURCE | TIMEOUT, True),
    Hostile(
        15, "forks", "import os; print(int(input()) ** 2 + 1, flush=True); os.fork()", POLICY, True
    ),
    Hostile(17, "floods stdout", "while True: print('x' * 10**5)", RESOURCE, True),
    Hostile(
        17,
        "floods without a newline",
        "import os\nwhile True: os.write(1, b'\\xc3' * 65536)",
        RESOURCE,
        True,
    ),
    Hostile(18, "writes a file", "open('out.txt', 'w').write('10')", POLICY, True),
    Hostile(20, "asks the network", "import socket; socket.socket()", POLICY, True),
    Hostile(23, "prints nan", "print(float('nan'))", WRONG, True),
    Hostile(
        23, "prints a decimal of many digits", "print('10.' + '0' * 3 + '9' * 10**6)", WRONG, True
    ),
    Hostile(
        24, "prints no text", "import sys; sys.stdout.buffer.write(bytes(range(256)))", WRONG, True
    ),
)

#: Whole responses, of kind 25. The program in them, where one is to be found, is wrong.
RESPONSES = {
    "nothing": "",
    "no block": "def f(x): return x * x + 1",
    "only another language": "```rust\nfn f(x: i64) -> i64 { x * x + 1 }\n```",
    "only in thought": "<think>\n```python\ndef f(x): return x * x + 1\n```\n</think>\nDone.",
    "thought without end": "<think>\n```python\ndef f(x): return x * x + 1\n```",
    "hidden character before the fence": "\u200b```python\ndef f(x): return x * x + 1\n\u200b```",
    "a line of tildes": "~" * 10**5 + "`",
    "a fence and a line of blanks": "```" + " " * 10**5 + "`",
    "fence in the middle of a line": "so: ```python def f(x): return x * x + 1```",
}
