"""The training loop and what surrounds it: batches, checkpoints, validation, run folders."""
