"""Pretraining: one training loop; methods differ from plain training by their hooks only."""

from pretrain.recipes.recipe import METHODS as METHODS
