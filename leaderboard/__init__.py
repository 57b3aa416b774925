"""Leaderboards: submissions checked as hostile input, statistical ties, nothing executed.

submission: archive and declaration -> checks -> board, a folder of entries; ranking: records ->
tiers; methods: runs and their matched-compute controls; reports, figures and site: how it is shown.
No module loads torch.
"""
