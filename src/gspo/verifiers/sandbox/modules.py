"""Standard modules that a fork server imports before its first job.

A job finds them loaded: an import costs nothing, and works where the library's files cannot be
read (an interpreter below a private home folder, a kernel without Landlock). Other standard
modules are imported from disk where that is allowed. Nothing else exists for a job.
"""

from __future__ import annotations

import contextlib
import importlib
import locale

_NAMES = """
    _strptime abc argparse array ast asyncio atexit base64 binascii bisect builtins calendar cmath
    cmd codecs collections collections.abc colorsys concurrent.futures concurrent.futures.thread
    configparser contextlib contextvars copy copyreg csv ctypes ctypes.util dataclasses datetime decimal difflib
    dis doctest encodings.ascii encodings.cp1252 encodings.cp437 encodings.idna encodings.latin_1
    encodings.punycode encodings.raw_unicode_escape encodings.unicode_escape encodings.utf_16
    encodings.utf_32 encodings.utf_8_sig enum errno fcntl fileinput fnmatch fractions functools gc
    getopt glob graphlib gzip hashlib heapq hmac html html.entities html.parser inspect io ipaddress itertools json
    keyword linecache locale logging lzma math mmap multiprocessing
    numbers operator optparse os os.path pathlib pickle
    platform posixpath pprint queue random re reprlib resource sched secrets select selectors shlex
    shutil signal socket sqlite3 stat statistics string stringprep struct subprocess symtable sys tempfile
    textwrap threading time timeit token tokenize tomllib traceback tracemalloc types typing unicodedata unittest
    unittest.mock urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo bz2
""".split()  # noqa: SIM905 - as a list it fills pages


def import_all() -> list[str]:
    """Import every one; the names this interpreter was built without."""
    missing: list[str] = []
    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, "")  # its files are loaded: a job may then choose it again
    for name in _NAMES:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    return missing
