"""CIFAR-100: a hundred classes of small photographs."""

from fsbench.data.cards import read_card
from fsbench.data.sources._listings import torchvision_source

FACTS = read_card("cifar100")
load = torchvision_source(FACTS, "CIFAR100", "cifar-100-python")
