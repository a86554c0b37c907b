"""What a step did, as pure functions of tensors."""
