"""Boards that can be trusted: hostile submissions checked, honest ties, nothing executed.

archive -> submission -> checks -> board (a folder of entries) -> rank -> render. All torch-free.
"""
