"""Running programs that a model wrote.

    Sandbox (box.py)     this process; holds the answers; N threads, each with a fork server
    └─ layer             bubblewrap or gVisor around the fork server, where a probe passes
       └─ zygote.py      a fresh interpreter that never saw an answer; forks once a job
          └─ runner.py   the job: confined (confine.py), runs the program, sends a plain value

Modules that a fork server loads (confine, landlock, modules, runner, seccomp, syscalls, values,
zygote and `gspo.verifiers.frames`) import the standard library and one another, nothing else.
"""
