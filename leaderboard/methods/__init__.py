"""The method board: pretraining method x target, each row with its matched-compute control.

controls: which rows are matched; gains: the statistics over seeds and episodes; board: the record
of all of it; tables: how it is shown. No module loads torch.
"""
