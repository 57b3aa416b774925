"""Statistics of a whole board: rank intervals, average ranks, tree of winners."""
