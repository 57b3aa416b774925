"""The weights hash: what changes it and what does not."""

import hashlib

import pytest
import torch
from torch import Tensor

from fsbench.backbones.base import check_finite, weights_hash
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import CheckpointError
from fsbench.core.seeding import stream

Weights = dict[str, Tensor]


@pytest.fixture
def weights() -> Weights:
    with stream("weights"):
        return load_architecture("toy_resnet").build(5, 2).state_dict()


def test_the_definition_by_hand() -> None:
    """Sorted names; dtype, shape and little-endian bytes of each."""
    state = {"b": torch.tensor([1, 2], dtype=torch.int64), "a": torch.tensor(0.5)}
    text = b"a\0float32\0()\0" + b"\x00\x00\x00\x3f"
    text += b"b\0int64\0(2,)\0" + (1).to_bytes(8, "little") + (2).to_bytes(8, "little")
    assert weights_hash(state) == hashlib.sha256(text).hexdigest()
    assert weights_hash({**state, "a": torch.tensor(-0.5)}) != weights_hash(state)


def test_the_head_and_the_batch_counters_do_not_matter(weights: Weights) -> None:
    before = weights_hash(weights, ("fc",))
    weights["fc.weight"] += 1
    weights["bn1.num_batches_tracked"] += 7
    assert weights_hash(weights, ("fc",)) == before
    assert weights_hash({n: t for n, t in weights.items() if "fc" not in n}) == before


def test_order_and_memory_layout_do_not_matter(weights: Weights) -> None:
    turned = {
        n: t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else t
        for n, t in reversed(weights.items())
    }
    assert weights_hash(turned) == weights_hash(weights)


def test_a_module_whose_name_only_begins_like_the_head_is_hashed() -> None:
    state = {"fc.weight": torch.ones(1), "fc_norm.weight": torch.ones(1)}
    before = weights_hash(state, ("fc",))
    state["fc_norm.weight"] += 1
    assert weights_hash(state, ("fc",)) != before


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_named(weights: Weights, value: float) -> None:
    check_finite(weights, "good.pth")
    weights["layer2.0.bn1.running_var"][0] = value
    with pytest.raises(CheckpointError, match=r"bad\.pth.*layer2\.0\.bn1\.running_var"):
        check_finite(weights, "bad.pth")
