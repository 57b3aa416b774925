"""Episodic pretraining: meta-learners, their tasks and their validation."""
