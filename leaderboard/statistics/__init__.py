"""Statistics over a whole board: rank intervals, average ranks, when which entry wins."""
