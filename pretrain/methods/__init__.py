"""Training methods, one file each; the file name is the public name.

A file defines one frozen subclass of pretrain.method.Method. Its fields are the settings, its hooks
act on the training loop; recipe.MethodSettings describes the class attributes.

The docstring opens with one line on what the method does, then title, authors, venue and year, the
links to paper and official code, the equation, the settings in the paper, in the code and here, and
the differences.
"""
