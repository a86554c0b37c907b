"""Verifiers: they judge responses."""
