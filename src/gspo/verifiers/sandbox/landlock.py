"""Landlock: the job may read the interpreter's library, and nothing else on any disk.

The rule set is made once, by the fork server; each job puts it on itself.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from gspo.verifiers.sandbox.syscalls import libc, machine, number

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
#: Rights each version of the interface brought; all are taken away, two are given back by path.
_FS_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_NET_RIGHTS = {4: 0b11}  # bind and connect TCP
_SCOPES = {6: 0b11}  # abstract sockets and signals of processes outside
_RULE_PATH_BENEATH = 1
_VERSION_FLAG = 1


def version() -> int:
    """Of the kernel's Landlock; 0 where there is none."""
    try:
        return _call("landlock_create_ruleset", None, 0, _VERSION_FLAG)
    except OSError:
        return 0


def ruleset(readable: Iterable[str]) -> int:
    """Descriptor of a rule set that leaves reading beneath these paths, and no other access."""
    known = version()
    every = [
        sum(bits for since, bits in rights.items() if since <= known)
        for rights in (_FS_RIGHTS, _NET_RIGHTS, _SCOPES)
    ]
    # A kernel refuses fields it does not know unless they are zero, so all three are always sent.
    attributes = struct.pack("=QQQ", *every)
    descriptor = _call("landlock_create_ruleset", attributes, len(attributes), 0)
    for path in readable:
        _allow_reading(descriptor, path)
    return descriptor


def restrict(descriptor: int) -> None:
    """Put the rule set on this thread for good; needs PR_SET_NO_NEW_PRIVS."""
    _call("landlock_restrict_self", descriptor, 0)


def _allow_reading(descriptor: int, path: str) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0)
        rule = struct.pack("=Qi", rights, place)
        _call("landlock_add_rule", descriptor, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(place)


def _call(name: str, *arguments: int | bytes | None) -> int:
    found = number(name, machine())
    words = [ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    result = libc().syscall(ctypes.c_long(found or 0), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name} refused")
    return int(result)
