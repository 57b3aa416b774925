"""Affine tuning: one network for many episodes, with affine parameters of their own."""
