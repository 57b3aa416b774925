"""KELS keeps a slim network inside the dense one and redraws the rest."""

from pathlib import Path

import pytest
import torch
from support.events import at_event, changed, finish_epoch, kernel_names, open_round, train_round
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError
from pretrain.methods.kels import (
    SlimSizes,
    build_redraw_masks,
    compute_slim_size,
    compute_slim_sizes,
)


def extract_slim(weights: dict[str, Tensor], sizes: SlimSizes, keep: float) -> dict[str, Tensor]:
    """Cut the state dict of the slim network out of that of the plain one."""
    small = {}
    for name, value in weights.items():
        owner = name.rpartition(".")[0]
        n_out, n_in = sizes.get(owner, (0, 0))
        if owner in sizes:
            small[name] = value[:n_out, :n_in] if value.ndim > 1 else value[:n_out]
        else:
            small[name] = value[: compute_slim_size(keep, len(value))] if value.ndim else value
    return small


def test_the_first_filters_and_channels_keep_their_bits(tmp_path: Path) -> None:
    made, before, after = at_event("kels", tmp_path, "width=4", "plan.rounds=3")
    for _ in range(2):
        assert changed(before, after) == kernel_names(made)
        for name in kernel_names(made):
            n_out, n_in = before[name].shape[:2]
            rows = n_out if name == "fc.weight" else n_out // 2
            columns = 3 if name == "conv1.weight" else n_in // 2
            same = before[name] == after[name]
            assert bool(same[:rows, :columns].all())
            assert not bool(same[rows:].any())
            assert not bool(same[:, columns:].any())
        if made.ctx.clock.round == 1:
            finish_epoch(made)
            train_round(made)
            before, after = open_round(made)


def test_slim_sizes_are_rounded_up_exactly() -> None:
    assert [compute_slim_size(0.5, n) for n in (1, 2, 3, 64)] == [1, 1, 2, 32]
    assert compute_slim_size(0.07, 100) == 7
    assert compute_slim_size(1.0, 7) == 7


@pytest.mark.parametrize("name", ["toy_resnet", "seal_resnet50", "cnn_bn"])
def test_the_slim_part_alone_gives_the_outputs_of_the_dense_network(name: str) -> None:
    architecture = load_architecture(name).at(32)
    dense, small = architecture.build(4, 8).double(), architecture.build(4, 4).double()
    for value in dense.state_dict().values():
        if value.ndim == 1:  # norms that are not at their initial values
            value.add_(torch.rand(value.shape, dtype=value.dtype) * 0.5)
    roles = architecture.roles(dense)
    sizes_by_layer = compute_slim_sizes(dense, roles, 0.5)
    small.load_state_dict(extract_slim(dense.state_dict(), sizes_by_layer, 0.5))
    for layer, sizes in sizes_by_layer.items():
        for tensor, mask in build_redraw_masks(dense, layer, *sizes).items():
            dense.get_parameter(tensor).data[mask] = 0
    x = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    torch.testing.assert_close(small.eval()(x), dense.eval()(x), rtol=1e-10, atol=1e-12)


class Branch(nn.Module):
    """Two layers whose channels do not match, as after a concatenation."""

    def __init__(self, second: nn.Module) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.second = second


def roles() -> RoleMap:
    return RoleMap(("first", "second"), (), "head", (), ())


@pytest.mark.parametrize("second", [nn.Conv2d(11, 4, 1), nn.Conv2d(8, 8, 3, groups=2)])
def test_concatenated_and_grouped_channels_are_refused(second: nn.Module) -> None:
    with pytest.raises(UsageError, match="kels cannot split second"):
        compute_slim_sizes(Branch(second), roles(), 0.5)


def test_depthwise_filters_flattened_channels_and_biases() -> None:
    assert compute_slim_sizes(Branch(nn.Conv2d(8, 8, 3, groups=8)), roles(), 0.25)["second"] == (
        2,
        1,
    )
    assert compute_slim_sizes(Branch(nn.Linear(8 * 9, 10)), roles(), 0.3)["second"] == (3, 27)
    taken = build_redraw_masks(Branch(nn.Linear(72, 10)), "first", 2, 3)
    assert taken["first.bias"].tolist() == [False, False, *[True] * 6]
    assert build_redraw_masks(Branch(nn.Linear(72, 10)), "second", 3, 18).keys() == {
        "second.weight"
    }
