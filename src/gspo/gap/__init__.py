"""`gspo gap`: engine log-probs against the trainer's, from a run folder or measured afresh."""
