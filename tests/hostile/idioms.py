"""More honest programs: idioms that the sandbox once refused, and their neighbours."""

from tests.hostile.honest import SUM, Function, Script

# fmt: off
FAST_INPUT = '''import os, sys
from io import BytesIO, IOBase
BUFSIZE = 8192
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def read(self):
        while True:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE))
            if not b: break
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines = 0
        return self.buffer.read()
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE))
            self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.read = lambda: self.buffer.read().decode("ascii")
        self.readline = lambda: self.buffer.readline().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
input = lambda: sys.stdin.readline().rstrip("\\r\\n")
n = int(input())
print(sum(map(int, input().split())))
'''

FUNCTIONS = (
    Function('named tuple returned', "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(v): return [P(a, b) for a, b in v]", 'assert f([[1, 2]]) == [(1, 2)]'),
    Function('members of enums returned', "from enum import IntEnum, Enum\nclass L(IntEnum):\n  LOW = 1\nclass C(str, Enum):\n  RED = 'red'\ndef f(): return L.LOW, C.RED", "assert f() == (1, 'red')"),
    Function('own list class returned', 'class S(list):\n  def push(s, x): s.append(x); return s\ndef f(): return S().push(1)', 'assert f() == [1]'),
    Function('frozen set for a set', 'def f(v): return frozenset(v)', 'assert f([1, 2, 2]) == {1, 2}'),
    Function('a deep trie returned', 'def f(w):\n  root = t = {}\n  for c in w: t = t.setdefault(c, {})\n  return root', "assert len(f('a' * 95)) == 1"),
    Function('topological order', 'from graphlib import TopologicalSorter\ndef f(g): return list(TopologicalSorter(g).static_order())', "assert f({'b': ['a'], 'c': ['b']}) == ['a', 'b', 'c']"),
    Function('single dispatch', "from functools import singledispatch\n@singledispatch\ndef f(x): return 'other'\n@f.register\ndef _(x: int): return 'int'\n@f.register(list)\ndef _(x): return 'list'", "assert f(1) == 'int'\nassert f([]) == 'list'\nassert f('') == 'other'"),
    Function('total ordering, insort by key', 'from functools import total_ordering\nimport bisect\n@total_ordering\nclass V:\n  def __init__(s, x): s.x = x\n  def __eq__(s, o): return s.x == o.x\n  def __lt__(s, o): return s.x < o.x\ndef f(v):\n  out = []\n  for x in v: bisect.insort(out, V(x))\n  return [e.x for e in out], V(1) >= V(0)', 'assert f([2, 1]) == ([1, 2], True)'),
    Function('descriptor, init_subclass, metaclass', "class Reg(type):\n  names = []\n  def __new__(m, n, b, d, **k):\n    m.names.append(n)\n    return super().__new__(m, n, b, d, **k)\nclass Typed:\n  def __set_name__(s, o, n): s.n = '_' + n\n  def __get__(s, i, o): return getattr(i, s.n)\n  def __set__(s, i, v): setattr(i, s.n, int(v))\nclass A(metaclass=Reg):\n  x = Typed()\n  def __init_subclass__(c, **k): c.k = k\nclass B(A, z=1): pass\ndef f():\n  b = B(); b.x = '4'\n  return b.x, B.k, Reg.names", "assert f() == (4, {'z': 1}, ['A', 'B'])"),
    Function('asynchronous generator, queue and timeout', 'import asyncio\nasync def gen(n):\n  for i in range(n):\n    await asyncio.sleep(0)\n    yield i\nasync def main(n):\n  q = asyncio.Queue()\n  async def prod():\n    async for i in gen(n): await q.put(i)\n    await q.put(None)\n  t = asyncio.create_task(prod())\n  out = []\n  while (x := await asyncio.wait_for(q.get(), 1)) is not None: out.append(x)\n  await t\n  return out\ndef f(n): return asyncio.run(main(n))', 'assert f(3) == [0, 1, 2]'),
    Function('pickle and deep copy of its own class', 'import pickle\nclass A:\n  def __init__(s, x): s.x = x\ndef f(x): return pickle.loads(pickle.dumps(A(x))).x', 'assert f(3) == 3'),
    Function('type hints at run time', "from typing import get_type_hints, Annotated, Literal, TypedDict\nclass M(TypedDict, total=False):\n  a: int\ndef g(x: Annotated[int, 'u'], y: Literal['a']) -> M: ...\ndef f(): return sorted(get_type_hints(g))", "assert f() == ['return', 'x', 'y']"),
    Function('generator protocol', "def g():\n  total = 0\n  while True:\n    x = yield total\n    if x is None: return total\n    total += x\ndef d():\n  r = yield from g()\n  yield ('done', r)\ndef f(v):\n  c = d(); next(c)\n  for x in v: c.send(x)\n  return c.send(None)", "assert f([1, 2]) == ('done', 3)"),
    Function('exception groups and notes', "def f():\n  try:\n    raise ExceptionGroup('g', [ValueError('a'), TypeError('b')])\n  except* ValueError as e: out = [str(x) for x in e.exceptions]\n  except* TypeError: pass\n  return out", "assert f() == ['a']"),
    Function('doctest of its own', "import doctest\ndef f(x):\n  '''\n  >>> f(1)\n  2\n  '''\n  return x + 1\nif __name__ == '__main__': doctest.testmod()", 'assert f(1) == 2'),
    Function('unittest at the end', "import unittest\ndef f(x): return x + 1\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(f(1), 2)\nif __name__ == '__main__': unittest.main()", 'assert f(3) == 4'),
    Function('cached property, partial method', 'from functools import cached_property, partialmethod\nclass A:\n  @cached_property\n  def big(s): return sum(range(10))\n  def p(s, a, b): return a + b\n  q = partialmethod(p, 1)\ndef f(): return A().big, A().q(2)', 'assert f() == (45, 3)'),
    Function('memoryview and bytes', "def f(b):\n  m = memoryview(bytearray(b))\n  m[0] = 65\n  return bytes(m[:2]), int.from_bytes(b, 'big')", "assert f(b'abc') == (b'Ab', 6382179)"),
    Function('numbers as text beyond 4300 digits', 'import sys\nsys.set_int_max_str_digits(0)\ndef f(n): return len(str(2 ** n))', 'assert f(20000) == 6021'),
    Function('logging set up', "import logging, sys\nlogging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format='%(message)s')\nlog = logging.getLogger(__name__)\ndef f(x):\n  log.debug('%s', x)\n  return x", 'assert f(2) == 2'),
    Function('time measured', 'import time\ndef timed(g):\n  def h(*a):\n    s = time.process_time(); r = g(*a); print(time.process_time() - s); return r\n  return h\n@timed\ndef f(x): return x', 'assert f(2) == 2'),
    Function('condition, event, semaphore, timer', 'import threading\ndef f():\n  e, out = threading.Event(), []\n  c = threading.Condition()\n  t = threading.Timer(0.01, lambda: (out.append(1), e.set()))\n  t.start(); e.wait(1)\n  with threading.Semaphore(1), c: c.notify_all()\n  return out', 'assert f() == [1]'),
    Function('locale and formats', "import locale\nlocale.setlocale(locale.LC_ALL, '')\ndef f(n): return f'{n:,}', locale.format_string('%d', n)", "assert f(1234567) == ('1,234,567', '1234567')"),
    Function('time zones of fixed offset', 'from datetime import datetime, timezone, timedelta\ndef f(s): return datetime.fromisoformat(s).astimezone(timezone(timedelta(hours=2))).isoformat()', "assert f('2024-01-01T00:00:00+00:00') == '2024-01-01T02:00:00+02:00'"),
    Function('ordered merge and windows', 'import heapq\nfrom itertools import pairwise, islice, zip_longest, compress, starmap\ndef f(a, b): return list(heapq.merge(a, b)), list(pairwise(a)), list(zip_longest(a, b, fillvalue=0))', 'assert f([1, 3], [2]) == ([1, 2, 3], [(1, 3)], [(1, 2), (3, 0)])'),
    Function('frames of its own', 'import sys, traceback\ndef f():\n  try: 1 / 0\n  except ZeroDivisionError: return traceback.format_exc().splitlines()[-1], sys.exc_info()[0].__name__', "assert f() == ('ZeroDivisionError: division by zero', 'ZeroDivisionError')"),
    Function('optional imports', 'try:\n  import numpy as np\nexcept ImportError:\n  np = None\ntry:\n  import gmpy2\nexcept ModuleNotFoundError: gmpy2 = None\ndef f(v): return sum(v) if np is None else int(np.sum(v))', 'assert f([1, 2]) == 3'),
    Function('stars', 'from math import *\nfrom collections import *\nfrom itertools import *\nfrom typing import *\nfrom heapq import *\nfrom functools import *\ndef f(v: List[int]) -> int: return floor(sqrt(reduce(lambda a, b: a + b, v)))', 'assert f([4, 5]) == 3'),
    Function('where its file would be', 'import os, sys\nhere = os.path.dirname(os.path.abspath(__file__))\nsys.path.append(here)\ndef f(): return os.path.basename(__file__)', "assert f() == 'solution.py'"),
    Function('a zip in memory', "import io, zipfile\ndef f(s):\n  b = io.BytesIO()\n  with zipfile.ZipFile(b, 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('a.txt', s)\n  return zipfile.ZipFile(b).read('a.txt').decode()", "assert f('abc') == 'abc'"),
    Function('recursion of 900 and a deep list', 'def f(n): return [] if n == 0 else [f(n - 1)]', 'assert f(90) == [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]'),
    Function('random numbers by seed', 'import random\ndef f():\n  r = random.Random(1)\n  return r.randint(1, 100), [r.random() for _ in range(2)]', 'assert f() == (18, [0.5692038748222122, 0.8022650611681835])'),
    Function('floats that are integers', "def f(v): return {k: sum(v) / len(v) for k in 'ab'}", "assert f([2, 4]) == {'a': 3, 'b': 3}"),
)

SCRIPTS = (
    Script('a template of fast input and output', FAST_INPUT, SUM, '6\n'),
    Script('a generator over stdin', 'import sys\ndef tokens():\n  for line in sys.stdin: yield from line.split()\nt = tokens()\nprint(sum(int(next(t)) for _ in range(int(next(t)))))', SUM, '6'),
    Script('recursive generators (bootstrap)', 'from types import GeneratorType\ndef bootstrap(f, stack=[]):\n  def w(*a, **k):\n    if stack: return f(*a, **k)\n    to = f(*a, **k)\n    while True:\n      if type(to) is GeneratorType: stack.append(to); to = next(to)\n      else:\n        stack.pop()\n        if not stack: break\n        to = stack[-1].send(to)\n    return to\n  return w\n@bootstrap\ndef d(n): yield 0 if n == 0 else (yield d(n - 1)) + 1\nprint(d(20000))', '', '20000'),
    Script('a file for input if there is one', "import os, sys\nif os.path.exists('input.txt'): sys.stdin = open('input.txt')\ntry: sys.stdin = open('in.txt', 'r')\nexcept OSError: pass\nprint(sum(map(int, sys.stdin.read().split()[1:])))", SUM, '6'),
    Script('stdout made anew', "import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8', write_through=True)\nsys.stdout.reconfigure(line_buffering=True)\nprint('é')", '', 'é'),
    Script('stdin made anew', "import sys, io\nsys.stdin = io.TextIOWrapper(sys.stdin.buffer, encoding='utf-8')\nprint(sum(map(int, sys.stdin.read().split()[1:])))", SUM, '6'),
    Script('open(1)', "o = open(1, 'w', closefd=False)\no.write('6\\n')\no.flush()", SUM, '6'),
    Script('print redefined', "import sys\nout = []\nprint = lambda *a: out.append(' '.join(map(str, a)))\nprint(6)\nsys.stdout.write('\\n'.join(out))", SUM, '6'),
    Script('fileinput', "import fileinput\nprint(sum(map(int, ' '.join(fileinput.input()).split()[1:])))", SUM, '6'),
    Script('a main in a class, exit by status', "import sys\nclass Main:\n  def run(self): print(6)\n  def __call__(self): self.run(); return 0\nif __name__ == '__main__': sys.exit(Main()())", SUM, '6'),
    Script('json in and out', "import json, sys\nd = json.load(sys.stdin)\njson.dump({'n': sum(d['v'])}, sys.stdout)", '{"v": [1, 2, 3]}', '{"n": 6}'),
    Script('prompts with no text', "n = int(input(''))\nprint(sum(map(int, input().split())))", SUM, '6'),
    Script('asynchronous main', 'import asyncio\nasync def main(): print(await asyncio.to_thread(lambda: sum(map(int, input().split()))))\nasyncio.run(main())', '1 2 3', '6'),
    Script('an own timer of CPU seconds', 'import resource, sys\nprint(resource.getrlimit(resource.RLIMIT_CPU)[0] > 0, resource.getrusage(resource.RUSAGE_SELF).ru_utime >= 0)', '', 'True True'),
    Script('pickled main class', 'import pickle\nclass A: x = 6\nprint(pickle.loads(pickle.dumps(A())).x)', '', '6'),
    Script('raises the recursion limit in a thread, as on Codeforces', 'import sys, threading\ndef main():\n  def d(n): return 0 if n == 0 else 1 + d(n - 1)\n  print(d(30000))\nsys.setrecursionlimit(1 << 30)\nthreading.stack_size(1 << 27)\nt = threading.Thread(target=main)\nt.start()\nt.join()', '', '30000'),
    Script('decimals padded', "print('{:.2f} {:>6}'.format(2 / 3, 'ab'))", '', '0.67     ab'),
    Script('stdout closed at the end', 'import sys\nprint(6)\nsys.stdout.close()', '', '6'),
    Script('a file over descriptor 1 that nobody flushes', "out = open(1, 'w', closefd=False)\nout.write('6')", '', '6'),
    Script('stdout replaced, flushed by nobody', "import sys\nsys.stdout = open(1, 'w', buffering=65536, closefd=False)\nprint(6)", '', '6'),
    Script('prints when deleted', 'class A:\n  def __del__(s): print(6)\na = A()', '', '6'),
    Script('a with over stdout', "import sys\nwith sys.stdout as o: o.write('6')", '', '6'),
    Script('no stdout', 'import sys\nprint(6, flush=True)\nsys.stdout = None\nprint(7)', '', '6'),
)
# fmt: on
