"""A seccomp filter made by hand: an allow list of system calls for one computing process.

Three answers: allowed; refused with EPERM, so that a program which merely tries to write a file
gets an exception; killed, for acts no honest solution needs (a process, a socket, a namespace).
Calls that could reach another process by their arguments (signals through `fcntl` owners,
`prlimit64` of another pid, datagrams with an address) are allowed for harmless arguments only.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Iterator

from gspo.verifiers.sandbox.syscalls import ARCHES, libc, number

_ALLOWED = """
    arch_prctl access alarm brk clock_getres clock_gettime clock_nanosleep close dup dup2 dup3
    epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 exit exit_group faccessat
    faccessat2 fstat futex get_robust_list getcpu getcwd getdents64 getegid geteuid getgid
    getgroups getitimer getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid
    getrlimit getrusage getsid getsockname gettid gettimeofday getuid lseek lstat madvise
    membarrier mmap mprotect mremap munmap nanosleep newfstatat pause pipe pipe2 poll ppoll pread64
    preadv pselect6 pwrite64 pwritev read readlink readlinkat readv recvfrom restart_syscall rseq
    rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait
    sched_getaffinity sched_yield select set_robust_list set_tid_address setitimer
    shutdown sigaltstack stat statx sysinfo time times uname wait4 waitid write writev
""".split()  # noqa: SIM905 - as a list it fills pages

_KILLED = """
    accept4 add_key bind bpf chroot connect execve execveat finit_module fork init_module
    io_uring_enter io_uring_register io_uring_setup kexec_load keyctl kill listen memfd_create
    mount name_to_handle_at open_by_handle_at perf_event_open personality pidfd_getfd pidfd_open
    pidfd_send_signal pivot_root process_vm_readv process_vm_writev ptrace reboot request_key
    rt_sigqueueinfo rt_tgsigqueueinfo sendmsg setgid setgroups setns setpgid setregid setresgid
    setresuid setreuid setsid setuid socket swapoff swapon tkill umount2 unshare userfaultfd vfork
""".split()  # noqa: SIM905 - as a list it fills pages

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_EPERM, _ENOSYS = 1, 38

_X32_BIT = 0x40000000  # x86_64 alone: the same calls under other numbers
_CLONE_THREAD = 0x00010000
_CLONE_NEW = 0x7E020000  # namespaces: cgroup, uts, ipc, user, pid, net, mount
_WRITING = 0o3 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE
_FCNTL = (0, 1, 2, 3, 4, 1030, 1032)  # DUPFD, GETFD, SETFD, GETFL, SETFL, DUPFD_CLOEXEC, GETPIPE_SZ
_IOCTL = (
    0x5401,
    0x5413,
    0x541B,
    0x5421,
    0x5450,
    0x5451,
)  # TCGETS TIOCGWINSZ FIONREAD FIONBIO FIO*CLEX
_RLIMIT_CPU = 0
_PRCTL = (15, 16)  # PR_SET_NAME, PR_GET_NAME of the calling thread
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPE = 1, 1, 0xF

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_NR, _ARCH = 0, 4  # offsets in struct seccomp_data

_Code = tuple[int, int, int, int]  # code, jump if true, jump if false, k
_instruction = struct.Struct("=HBBI")


def program(machine: str, may_read_files: bool) -> bytes:
    """The filter's instructions. may_read_files: something else (Landlock) limits which files."""
    code: list[_Code] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, ARCHES[machine]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NR),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _KILL_PROCESS)]
    rules = {name: [(_RETURN, 0, 0, _ALLOW)] for name in _ALLOWED}
    rules |= {name: [(_RETURN, 0, 0, _KILL_PROCESS)] for name in _KILLED}
    rules |= _by_argument(may_read_files)
    for name, body in rules.items():
        found = number(name, machine)
        if found is not None:
            code += [(_EQUAL, 0, len(body), found), *body]
    code.append((_RETURN, 0, 0, _ERRNO | _EPERM))
    return b"".join(_instruction.pack(*line) for line in code)


def _by_argument(may_read_files: bool) -> dict[str, list[_Code]]:
    return {
        "clone": [
            (_LOAD, 0, 0, _low(0)),
            (_AND, 0, 0, _CLONE_THREAD | _CLONE_NEW),
            (_EQUAL, 0, 1, _CLONE_THREAD),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _KILL_PROCESS),
        ],
        "clone3": [(_RETURN, 0, 0, _ERRNO | _ENOSYS)],  # its flags are in memory; glibc then clones
        "open": [*_opening(1, may_read_files)],
        "openat": [*_opening(2, may_read_files)],
        "fcntl": [*_one_of(1, _FCNTL)],
        "ioctl": [*_one_of(1, _IOCTL)],
        "prctl": [*_one_of(0, _PRCTL)],
        "setrlimit": [(_LOAD, 0, 0, _low(0)), *_but(_RLIMIT_CPU)],
        "prlimit64": [  # of itself; the CPU limit is read only: whom it kills would seem killed by us
            (_LOAD, 0, 0, _low(0)),
            (_EQUAL, 0, 7, 0),
            (_LOAD, 0, 0, _low(1)),
            (_EQUAL, 0, 4, _RLIMIT_CPU),
            (_LOAD, 0, 0, _low(2)),
            (_EQUAL, 0, 3, 0),
            (_LOAD, 0, 0, _low(2) + 4),
            (_EQUAL, 0, 1, 0),
            (_RETURN, 0, 0, _ALLOW),
            _refused(),
        ],
        "socketpair": [  # asyncio wakes itself through one
            (_LOAD, 0, 0, _low(0)),
            (_EQUAL, 0, 4, _AF_UNIX),
            (_LOAD, 0, 0, _low(1)),
            (_AND, 0, 0, _SOCK_TYPE),
            (_EQUAL, 0, 1, _SOCK_STREAM),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _KILL_PROCESS),
        ],
        "sendto": [  # without an address
            (_LOAD, 0, 0, _low(4)),
            (_EQUAL, 0, 3, 0),
            (_LOAD, 0, 0, _low(4) + 4),
            (_EQUAL, 0, 1, 0),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _KILL_PROCESS),
        ],
    }


def _low(argument: int) -> int:
    """Offset of an argument's lower half; both machines are little-endian."""
    return 16 + 8 * argument


def _refused() -> _Code:
    return (_RETURN, 0, 0, _ERRNO | _EPERM)


def _opening(flags: int, may_read_files: bool) -> Iterator[_Code]:
    """Allowed when the flags only read."""
    if may_read_files:
        yield (_LOAD, 0, 0, _low(flags))
        yield (_ANY_BIT, 1, 0, _WRITING)
        yield (_RETURN, 0, 0, _ALLOW)
    yield _refused()


def _but(value: int) -> tuple[_Code, ...]:
    return ((_EQUAL, 1, 0, value), (_RETURN, 0, 0, _ALLOW), _refused())


def _one_of(argument: int, values: Iterable[int]) -> Iterator[_Code]:
    yield (_LOAD, 0, 0, _low(argument))
    for value in values:
        yield (_EQUAL, 0, 1, value)
        yield (_RETURN, 0, 0, _ALLOW)
    yield _refused()


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(filter_code: bytes) -> None:
    """Put the filter on this process for good. OSError when the kernel refuses it."""
    buffer = ctypes.create_string_buffer(filter_code, len(filter_code))
    packed = _Program(len(filter_code) // _instruction.size, ctypes.addressof(buffer))
    pr_set_seccomp, mode_filter = 22, 2
    if libc().prctl(pr_set_seccomp, mode_filter, ctypes.byref(packed), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp filter refused")
