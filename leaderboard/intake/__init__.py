"""Submissions: read as hostile input, checked by small rules, put on a board by rename."""
