"""CIFAR-10: ten classes of small photographs."""

from functools import partial

from fsbench.data.cards import read_card
from fsbench.data.sources._listings import read_cifar, records_source

FACTS = read_card("cifar10")
TRAIN, TEST = tuple(f"data_batch_{i}.bin" for i in range(1, 6)), ("test_batch.bin",)
load = records_source(FACTS, "cifar-10-batches-bin", TRAIN, TEST, partial(read_cifar, 1))
