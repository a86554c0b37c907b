"""The filter, run by a small machine of our own: also for the processor that is not here."""

import struct

import pytest

from gspo.verifiers.sandbox.seccomp import program
from gspo.verifiers.sandbox.syscalls import ARCHES, number

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
MACHINES = tuple(ARCHES)


def answer(machine, name, *arguments, may_read=True, arch=None, raw=None):
    """What the filter returns for a call."""
    nr = number(name, machine) if raw is None else raw
    arch = ARCHES[machine] if arch is None else arch
    data = struct.pack("=iIQ6Q", nr, arch, 0, *(*arguments, *[0] * (6 - len(arguments))))
    code = list(struct.iter_unpack("=HBBI", program(machine, may_read)))
    at = accumulator = 0
    while True:
        operation, true, false, k = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, k)
        elif operation == 0x54:
            accumulator &= k
        elif operation == 0x06:
            return k
        else:
            held = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}
            at += true if held[operation] else false


@pytest.fixture(params=MACHINES)
def machine(request):
    return request.param


@pytest.mark.parametrize("name", ["read", "write", "mmap", "futex", "exit_group", "clock_gettime"])
def test_computing_is_allowed(machine, name):
    assert answer(machine, name) == ALLOW


@pytest.mark.parametrize(
    "name", ["execve", "socket", "ptrace", "kill", "unshare", "mount", "bpf", "memfd_create"]
)
def test_acts_on_others_kill(machine, name):
    assert answer(machine, name) == KILL


def test_threads_only(machine):
    assert answer(machine, "clone", 0x3D0F00) == ALLOW  # what pthread_create asks for
    assert answer(machine, "clone", 17) == KILL  # fork
    assert answer(machine, "clone", 0x4111) == KILL  # posix_spawn
    assert answer(machine, "clone", 0x3D0F00 | 0x10000000) == KILL  # with a user namespace
    assert answer(machine, "clone3", 0, 0) == ENOSYS


def test_files_for_reading_only(machine):
    reading, writing, creating, cut = 0o2000000, 0o1, 0o100, 0o1000
    assert answer(machine, "openat", 0, 0, reading) == ALLOW
    assert answer(machine, "openat", 0, 0, reading, may_read=False) == EPERM
    for flags in (writing, 0o2, creating, cut, 0o20200000):
        assert answer(machine, "openat", 0, 0, flags) == EPERM


def test_no_signals_through_owners(machine):
    assert answer(machine, "fcntl", 0, 1030) == ALLOW
    for command in (8, 10, 15):  # F_SETOWN, F_SETSIG, F_SETOWN_EX
        assert answer(machine, "fcntl", 0, command) == EPERM
    for command in (0x8901, 0x8902, 0x5412):  # FIOSETOWN, SIOCSPGRP, TIOCSTI
        assert answer(machine, "ioctl", 0, command) == EPERM


def test_pairs_of_streams_without_addresses(machine):
    assert answer(machine, "socketpair", 1, 1 | 0o2000000) == ALLOW
    assert answer(machine, "socketpair", 1, 2) == KILL
    assert answer(machine, "socketpair", 2, 1) == KILL
    assert answer(machine, "sendto", 3, 0, 1, 0, 0, 0) == ALLOW
    assert answer(machine, "sendto", 3, 0, 1, 0, 1, 0) == KILL
    assert answer(machine, "sendto", 3, 0, 1, 0, 1 << 32, 0) == KILL


def test_its_cpu_limit_can_be_read_and_not_lowered(machine):
    """The kernel kills whom a lower one ends with SIGKILL, as if we had."""
    assert answer(machine, "prlimit64", 0, 0, 0, 1) == ALLOW
    for new in (1, 1 << 32):
        assert answer(machine, "prlimit64", 0, 0, new) == EPERM
    assert answer(machine, "setrlimit", 0, 1) == EPERM
    assert answer(machine, "setrlimit", 3, 1) == ALLOW


def test_its_own_limits_and_names_only(machine):
    assert answer(machine, "prlimit64", 0) == ALLOW
    assert answer(machine, "prlimit64", 1) == EPERM
    assert answer(machine, "prlimit64", 1, 3, 1) == EPERM
    assert answer(machine, "prlimit64", 0, 3, 1) == ALLOW  # the stack's
    assert answer(machine, "prctl", 15) == ALLOW
    assert answer(machine, "prctl", 4) == EPERM


def test_other_machines_and_unknown_calls(machine):
    assert answer(machine, "read", arch=0x40000003) == KILL  # i386 through int 0x80
    assert answer(machine, "read", raw=9999) == EPERM
    assert answer("x86_64", "read", raw=0x40000000) == KILL  # the x32 names


def test_the_filter_fits_the_kernel(machine):
    assert len(program(machine, True)) // 8 <= 4096  # BPF_MAXINSNS
