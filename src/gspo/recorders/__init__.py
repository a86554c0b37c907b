"""Recorders: the run folder, the terminal, and the reader of both."""
