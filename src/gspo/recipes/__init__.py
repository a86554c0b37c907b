"""Recipes: YAML in, parts out."""
