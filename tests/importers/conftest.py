"""The files here are settings of other trainers: read by tests, never imported."""

collect_ignore_glob = ["trl_*.py"]
