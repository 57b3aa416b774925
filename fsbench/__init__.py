"""fsbench: does this backbone, pretraining method or initialisation transfer, and is the gain real?

Nothing is imported here but the version: `fsbench` holds both the bottom and the top of the stack.
"""

__version__ = "0.1.0"
