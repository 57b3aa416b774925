"""CIFAR-100: a hundred classes of small photographs.

The official test images are for validation: the experiments on it state no other part.
"""

from fsbench.data.cards import read_card
from fsbench.data.sources._listings import cifar_source

FACTS = read_card("cifar100")
load = cifar_source(FACTS, "cifar-100-binary", ["train.bin"], ["test.bin"])
