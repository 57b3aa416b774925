"""Training methods, one file each; the file name is the public name.

A file defines one frozen subclass of pretrain.method.Method. Its fields are the settings, its hooks
act on the training loop, and the class attributes say

    SOURCE   paper and official code, in short
    RANK     when it acts among the methods of a recipe
    PAPER    rows of the paper's tables as recipes `paper/NAME`, with the published accuracies
    PILOT    what `pilot/NAME` changes in the recipe of that scale
    TOY      what `toy/NAME` changes in the recipe of that scale
    NEUTRAL  settings at which the method equals `normal` bit for bit, or why there are none

The docstring opens with one line on what the method does, then title, authors, venue and year, the
links to paper and official code, the equation, the settings in the paper, in the code and here, and
the differences.
"""
