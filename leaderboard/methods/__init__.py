"""The method board: pretraining method x target, each row with its matched-compute control.

runs: entries -> rows of one method with its seeds; gains: which rows are matched, and the
statistics over seeds and episodes; board: the record of all of it; tables: how it is shown. No
module loads torch.
"""
