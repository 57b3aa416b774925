"""Head reset restores the initial fully-connected layers, and nothing else."""

from pathlib import Path

import pytest
import torch
from support.rules import build
from support.stages import at_new_data

from pretrain.methods.head_reset import ResetScope, select_layers

HEAD = {"fc.weight", "fc.bias"}


def test_the_head_gets_its_initial_values(tmp_path: Path) -> None:
    event = at_new_data("head_reset", tmp_path)
    assert event.changed == HEAD
    assert all(torch.equal(event.after[n], event.start[n]) for n in HEAD)


def test_momentum_is_kept(tmp_path: Path) -> None:
    event = at_new_data("head_reset", tmp_path)
    assert float(event.made.ctx.optimizer_state()["fc.weight"]["momentum_buffer"].norm()) > 0


def test_a_fresh_draw_differs_from_the_initial_values(tmp_path: Path) -> None:
    event = at_new_data("head_reset", tmp_path, "head_reset.fresh_draw=true")
    assert event.changed == HEAD
    assert not torch.equal(event.after["fc.weight"], event.start["fc.weight"])


@pytest.mark.parametrize(
    ("network", "scope", "expected"),
    [
        ("cnn", "paper", {"fc1", "fc"}),
        ("cnn_bn", "paper", {"fc1", "fc"}),
        ("mlp", "paper", {"fc"}),
        ("mlp", "fully_connected", {"layer2.0", "fc"}),
        ("cnn", "head", {"fc"}),
    ],
)
def test_the_paper_resets_only_the_last_layer_of_an_mlp(
    network: str, scope: ResetScope, expected: set[str]
) -> None:
    _, roles = build(network)
    assert set(select_layers(roles, scope)) == expected


def test_hidden_layers_are_reset_too(tmp_path: Path) -> None:
    event = at_new_data(
        "head_reset", tmp_path, "architecture=mlp", "head_reset.scope=fully_connected"
    )
    hidden = {f"layer2.0.{part}" for part in ("weight", "bias")}
    assert event.changed == HEAD | hidden
