"""Checkpoints: complete or absent at every moment, and refused when they are not ours."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from support.pretrain import equal, killed_at, tiny, train, trainer
from torch import Tensor

from fsbench.core.errors import CheckpointError
from pretrain.training import checkpoint

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(3)}


def load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    loaded = checkpoint.load_checkpoint(folder)
    assert loaded is not None
    return loaded


def test_what_is_saved_comes_back_and_old_files_go(tmp_path: Path) -> None:
    assert checkpoint.load_checkpoint(tmp_path) is None
    state = {"x": 1.5, "saves": 0}
    checkpoint.save_checkpoint(tmp_path, {"a": torch.zeros(1)}, state)
    checkpoint.save_checkpoint(tmp_path, TENSORS, state)
    tensors, loaded = load(tmp_path)
    assert equal(tensors, TENSORS)
    assert loaded == {"x": 1.5, "saves": 2}
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"checkpoint.json", "checkpoint-2.safetensors"}


@pytest.mark.parametrize("dies_in", ["save_file", "write_atomic", "unlink"])
def test_a_kill_while_saving_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    checkpoint.save_checkpoint(tmp_path, {"a": torch.zeros(1)}, {"saves": 0, "turn": 1})

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    owner = Path if dies_in == "unlink" else checkpoint
    with monkeypatch.context() as patch:
        patch.setattr(owner, dies_in, die)
        with pytest.raises(KeyboardInterrupt):
            checkpoint.save_checkpoint(tmp_path, {"a": torch.ones(1)}, {"saves": 1, "turn": 2})
    tensors, state = load(tmp_path)
    turn = 2 if dies_in == "unlink" else 1
    assert (state["turn"], float(tensors["a"])) == (turn, turn - 1)


def test_damage_is_refused_naming_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_at(3, tiny("normal"), tmp_path, monkeypatch)
    sidecar = tmp_path / "checkpoint.json"
    whole = json.loads(sidecar.read_text())
    tensors = tmp_path / whole["tensors"]
    content = bytearray(tensors.read_bytes())
    content[-1] ^= 1
    tensors.write_bytes(content)
    other = tensors.with_name("other.safetensors")
    other.write_bytes(b"no tensors")
    renamed = {**whole, "tensors": other.name, "sha256": checkpoint.file_digest(other)}
    for text, says in [
        (json.dumps(renamed), "cannot be read"),
        (json.dumps(whole), f"{tensors} is missing or corrupt"),
        (json.dumps({**whole, "tensors": "../x"}), "is of format"),
        (json.dumps({**whole, "format": "theirs"}), "is of format 'theirs'"),
        ("{", f"{sidecar} is no checkpoint of fsbench"),
        ("[]", f"{sidecar} is no checkpoint of fsbench"),
    ]:
        sidecar.write_text(text)
        with pytest.raises(CheckpointError, match="delete") as caught:
            train(tmp_path, "normal")
        assert says in str(caught.value)


def test_buffers_of_a_resumed_run_lie_in_memory_as_their_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the optimizer launches a kernel for every tensor."""
    killed_at(3, tiny("normal"), tmp_path, monkeypatch)
    ctx = trainer(tiny("normal"), tmp_path).ctx
    assert ctx.parameters["conv1.weight"].is_contiguous(memory_format=torch.channels_last)
    for name, buffers in ctx.optimizer_state().items():
        assert buffers["momentum_buffer"].stride() == ctx.parameters[name].stride(), name


def test_weights_of_another_network_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_at(3, tiny("normal"), tmp_path, monkeypatch)
    tensors, state = load(tmp_path)
    tensors["model/fc.weight"] = torch.zeros(7, 16)
    checkpoint.save_checkpoint(tmp_path, tensors, state)
    with pytest.raises(CheckpointError, match=r"differing: fc\.weight"):
        train(tmp_path, "normal")
