"""Readers of the layouts that data sets come in; a card names its reader and sets its fields."""
