"""FC redraws the fully-connected layers and nothing of the convolutional part."""

from pathlib import Path

import pytest
from scipy.stats import kstest
from support.events import at_event, changed

from fsbench.backbones.architectures import RoleMap
from pretrain.methods.fc import select_tail


@pytest.mark.parametrize("scope", ["all", "head"])
def test_a_net_with_one_fully_connected_layer_loses_its_head(tmp_path: Path, scope: str) -> None:
    _, before, after = at_event("fc", tmp_path, f"fc.scope={scope}")
    assert changed(before, after) == {"fc.weight", "fc.bias"}


def test_scope_all_includes_norms_between_fully_connected_layers() -> None:
    roles = RoleMap(("conv1", "conv2", "dense", "head"), (), "head", ("dense", "head"), ())
    names = ("conv1.weight", "norm1.weight", "conv2.weight", "norm2.weight")
    dense = ("dense.weight", "dense.bias", "norm3.weight", "norm3.bias", "head.weight", "head.bias")
    assert select_tail((*names, *dense), roles) == dense
    odd = ("dense.weight", "conv2.weight", "head.weight")
    assert select_tail(odd, roles) == ("dense.weight", "head.weight")


def test_the_new_head_follows_the_initial_distribution(tmp_path: Path) -> None:
    _, _, after = at_event("fc", tmp_path, "width=32")
    weight = after["fc.weight"].flatten().double()
    sigma = (2 / 256) ** 0.5
    assert kstest(weight.numpy(), "norm", args=(0, sigma)).pvalue > 0.01
