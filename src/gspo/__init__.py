"""Critic-free reinforcement learning for language models, with a measured trust region."""
