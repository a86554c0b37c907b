"""Engines: they sample responses."""
