"""Recipes: everything that decides the weights of a run, as frozen data."""
