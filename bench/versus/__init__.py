"""Ours against the peer: TRL's GRPOTrainer with sequence-level ratios, in an environment of its own.

`python -m bench.versus` measures, `python -m bench.versus.report` writes docs/performance.md.
"""
