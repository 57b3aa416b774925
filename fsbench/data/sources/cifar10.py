"""CIFAR-10: ten classes of small photographs."""

from fsbench.data.cards import read_card
from fsbench.data.sources._listings import torchvision_source

FACTS = read_card("cifar10")
load = torchvision_source(FACTS, "CIFAR10", "cifar-10-batches-py")
