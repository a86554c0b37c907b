"""Prompts: tasks made on the fly, files, tokenizers."""
