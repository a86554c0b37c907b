"""A clip range from the recorded responses of a run: `gspo calibrate` and `fit_clip_range`.

samples   the off-policy responses of a run folder, or of rows in memory, as tensors
fit       the range with its interval, the length law, buckets, and what to know about the run
report    what a fit says: JSON, recipe lines, tables, a chart for the terminal
picture   the same as an HTML page

Reads the run folder alone, never the trainer. What is measured is a drop rate: it holds for the
learning rate, lengths and range in force of this run, and is no proof that a run is safe.
"""
