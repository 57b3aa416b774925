"""CIFAR-100: a hundred classes of small photographs."""

from functools import partial

from fsbench.data.cards import read_card
from fsbench.data.sources._listings import read_cifar, records_source

FACTS = read_card("cifar100")
TRAIN, TEST = ("train.bin",), ("test.bin",)
load = records_source(FACTS, "cifar-100-binary", TRAIN, TEST, partial(read_cifar, 2))
