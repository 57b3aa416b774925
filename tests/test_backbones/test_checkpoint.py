"""Files of others: what opens, what is refused, and that nothing in them runs."""

import argparse
import os
import pickle
import shlex
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from fsbench.backbones import checkpoint
from fsbench.core.errors import CheckpointError

TENSORS = {"conv1.weight": torch.arange(6.0).view(2, 3)}


class Poison:
    """Runs a command when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.trace}",)


@pytest.mark.parametrize("suffix", checkpoint.SUFFIXES)
def test_every_known_format_opens(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"weights{suffix}"
    if suffix == ".safetensors":
        save_file(TENSORS, path)
    else:
        torch.save(TENSORS, path)
    assert torch.equal(checkpoint.read_checkpoint(path)["conv1.weight"], TENSORS["conv1.weight"])


@pytest.mark.parametrize("how", ["zip", "legacy", "pickle"])
def test_a_poisoned_pickle_is_refused_by_the_name_of_its_class(tmp_path: Path, how: str) -> None:
    path, trace = tmp_path / "poison.pth", tmp_path / "trace"
    tree = {"state_dict": TENSORS, "extra": Poison(trace)}
    if how == "pickle":
        path.write_bytes(pickle.dumps({"extra": Poison(trace)}))
    else:
        torch.save(tree, path, _use_new_zipfile_serialization=how == "zip")
    with pytest.raises(CheckpointError, match=r"contains a pickled .*system") as caught:
        checkpoint.read_checkpoint(path)
    assert str(path) in caught.value.message
    assert "torch.load" in caught.value.fix
    assert "torch.save" in caught.value.fix
    assert not trace.exists()


def run_command(fix: str) -> None:
    """Run the `python -c` command of a message, as pasted into a shell, but in this process."""
    command = shlex.split(fix[fix.index("python -c ") :])
    assert command[:2] == ["python", "-c"]
    exec(command[2], {})


@pytest.mark.parametrize("what", ["module", "module in a dictionary", "settings in a dictionary"])
def test_the_conversion_in_the_message_works(tmp_path: Path, what: str) -> None:
    path, network = tmp_path / "it's.pth", nn.Sequential(nn.Conv2d(3, 4, 1))
    tree = {
        "module": network,
        "module in a dictionary": {"model": network, "epoch": 3},
        "settings in a dictionary": {"model": network.state_dict(), "args": Fraction(1, 2)},
    }[what]
    torch.save(tree, path)
    with pytest.raises(
        CheckpointError, match=r"contains a pickled (torch\.nn|fractions)"
    ) as caught:
        checkpoint.read_checkpoint(path)
    run_command(caught.value.fix)
    read = checkpoint.read_checkpoint(tmp_path / "it's.weights.pth")
    read = read if what == "module" else read["model"]
    assert torch.equal(read["0.weight"], network[0].weight)


def test_settings_beside_the_weights_are_read_without_their_classes(tmp_path: Path) -> None:
    path = tmp_path / "last.pth.tar"
    args = argparse.Namespace(model="resnet50", lr=0.1, output=Path("out"), best=np.float64(0.5))
    torch.save({"state_dict": TENSORS, "args": args, "metric": np.float32(71.5)}, path)
    tree = checkpoint.read_checkpoint(path)
    assert torch.equal(tree["state_dict"]["conv1.weight"], TENSORS["conv1.weight"])
    assert type(tree["args"]) is checkpoint.InertValue
    assert checkpoint.named_architecture(tree) == "resnet50"


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.95])
def test_cut_files_are_refused_by_name(tmp_path: Path, suffix: str, part: float) -> None:
    path = tmp_path / f"cut{suffix}"
    big = {"conv1.weight": torch.arange(4096.0)}
    save_file(big, path) if suffix == ".safetensors" else torch.save(big, path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
    with pytest.raises(CheckpointError, match="not a readable checkpoint") as caught:
        checkpoint.read_checkpoint(path)
    assert str(path) in caught.value.message
    assert "weights_only" not in str(caught.value)


@pytest.mark.parametrize("text", ["hello world", "<html>not found</html>", "version https://git"])
def test_text_instead_of_weights_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "page.pth"
    path.write_text(text)
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        checkpoint.read_checkpoint(path)


def test_a_list_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "list.pth"
    torch.save([torch.ones(1)], path)
    with pytest.raises(CheckpointError, match="holds a list"):
        checkpoint.read_checkpoint(path)
