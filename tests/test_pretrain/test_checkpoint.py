"""Checkpoints: complete or absent at every moment, and refused when they are not ours."""

import json
from pathlib import Path

import pytest
import torch
from support.pretrain import killed_at, source, tiny

from fsbench.core.errors import CheckpointError
from pretrain.training import checkpoint
from pretrain.training.loop import train_recipe

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(3)}


def test_what_is_saved_comes_back_and_old_files_go(tmp_path: Path) -> None:
    assert checkpoint.load_checkpoint(tmp_path) is None
    state = {"x": 1.5, "saves": 0}
    checkpoint.save_checkpoint(tmp_path, {"a": torch.zeros(1)}, state)
    checkpoint.save_checkpoint(tmp_path, TENSORS, state)
    loaded = checkpoint.load_checkpoint(tmp_path)
    assert loaded is not None
    assert all(torch.equal(loaded[0][name], TENSORS[name]) for name in TENSORS)
    assert loaded[1] == {"x": 1.5, "saves": 2}
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"checkpoint.json", "checkpoint-2.safetensors"}


@pytest.mark.parametrize("dies_in", ["tensors", "sidecar", "cleaning"])
def test_a_kill_while_saving_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    checkpoint.save_checkpoint(tmp_path, {"a": torch.zeros(1)}, {"saves": 0, "turn": 1})

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    target = {"tensors": "save_file", "sidecar": "write_atomic"}
    with monkeypatch.context() as patch:
        if dies_in == "cleaning":
            patch.setattr(Path, "unlink", die)
        else:
            patch.setattr(checkpoint, target[dies_in], die)
        with pytest.raises(KeyboardInterrupt):
            checkpoint.save_checkpoint(tmp_path, {"a": torch.ones(1)}, {"saves": 1, "turn": 2})
    loaded = checkpoint.load_checkpoint(tmp_path)
    assert loaded is not None
    turn = 2 if dies_in == "cleaning" else 1
    assert (loaded[1]["turn"], float(loaded[0]["a"])) == (turn, turn - 1)


def test_damage_is_refused_naming_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tiny("normal")
    killed_at(3, recipe, tmp_path, monkeypatch)
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
            train_recipe(recipe, source(), tmp_path)
        assert says in str(caught.value)


def test_weights_of_another_network_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny("normal")
    killed_at(3, recipe, tmp_path, monkeypatch)
    loaded = checkpoint.load_checkpoint(tmp_path)
    assert loaded is not None
    tensors, state = loaded
    tensors["model/fc.weight"] = torch.zeros(7, 16)
    checkpoint.save_checkpoint(tmp_path, tensors, state)
    with pytest.raises(CheckpointError, match=r"differing: fc\.weight"):
        train_recipe(recipe, source(), tmp_path)
