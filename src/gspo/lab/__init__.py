"""The article's experiments as commands."""
