"""Boards that can be trusted: hostile submissions checked, honest ties, nothing executed.

submission: archive + declaration -> candidate -> checks -> board (a folder of entries);
standing: board -> rank -> render. All torch-free.
"""
