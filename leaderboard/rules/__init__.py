"""Boards: entries, columns, official versions, badges, tables."""
