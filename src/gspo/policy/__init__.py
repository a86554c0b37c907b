"""The policy: scores tokens and takes optimizer steps."""
