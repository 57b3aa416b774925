"""CIFAR-10: ten classes of small photographs.

The official test images are for validation: the experiments on it state no other part.
"""

from fsbench.data.cards import read_card
from fsbench.data.sources._listings import cifar_source

FACTS = read_card("cifar10")
load = cifar_source(
    FACTS, "cifar-10-batches-bin", [f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]
)
