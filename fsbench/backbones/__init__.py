"""Backbones: head-free networks that turn images into features, whatever they came from."""
