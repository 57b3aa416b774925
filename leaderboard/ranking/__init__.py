"""Ranking: tiers by paired statistics, and statistics over a whole board."""
