"""Data sets: `load_target`, `load_source`, and the registries of their FACTS (torch-free)."""
