"""Classifier heads for many episodes at once, on Gram matrices of cached features."""
