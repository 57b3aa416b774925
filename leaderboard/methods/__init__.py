"""The method board: pretraining method x target, each row beside its matched-compute control.

grouping: entries -> rows of one method with its seeds; controls: which rows are matched; gains and
seeds: the statistics; pareto: accuracy against cost; build joins them into the record that render
and the site draw. All torch-free.
"""
