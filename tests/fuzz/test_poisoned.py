"""Checkpoints with code in every wrapper: it never runs, and weights beside it are read."""

import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from fuzz.cases import ARCH, SIZES, Tally
from fuzz.poison import OPCODES, WAYS, Poison, trees
from hypothesis import strategies as st

from fsbench.backbones import load_backbone
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import CheckpointError

TENSORS = {"stem.weight": torch.ones(3), "bn.weight": torch.zeros(2)}
SUFFIXES = st.sampled_from([".pth", ".pt", ".ckpt", ".bin", ".tar", ".safetensors"])


def write(path: Path, tree: object, how: str, protocol: int) -> None:
    if how == "pickle":
        path.write_bytes(pickle.dumps(tree, protocol))
    else:
        is_zip = how == "zip"
        torch.save(tree, path, pickle_protocol=protocol, _use_new_zipfile_serialization=is_zip)


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_no_pickle_runs(size: int, tmp_path: Path, canary: Path, tally: Tally) -> None:
    def check(tree: object, how: str, protocol: int, suffix: str) -> None:
        path = tmp_path / f"a{suffix}"
        write(path, tree, how, protocol)
        assert tally.load(path) is None  # the tensors are not those of the architecture
        assert not canary.exists()

    hows, protocols = st.sampled_from(["zip", "legacy", "pickle"]), st.integers(0, 5)
    drawn = (trees(TENSORS, canary), hows, protocols, SUFFIXES)
    tally.explore(size, check, *drawn, ends=["refused"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("opcodes", OPCODES)
@pytest.mark.parametrize("is_zipped", [False, True])
def test_no_opcode_runs(opcodes: bytes, is_zipped: bool, tmp_path: Path, canary: Path) -> None:
    path, pickled = tmp_path / "a.pth", opcodes.replace(b"COMMAND", f"touch {canary}".encode())
    torch.save({"x": torch.ones(1)}, path)
    if is_zipped:
        with zipfile.ZipFile(path) as old:
            members = {i.filename: old.read(i) for i in old.infolist()}
        with zipfile.ZipFile(path, "w") as new:
            for name, data in members.items():
                new.writestr(name, pickled if name.endswith("data.pkl") else data)
    else:
        path.write_bytes(pickled)
    with pytest.raises(CheckpointError):
        load_backbone(str(path), arch=ARCH)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("how", ["zip", "legacy"])
@pytest.mark.parametrize("way", WAYS)
def test_weights_beside_a_poison_are_read(
    way: str, how: str, protocol: int, tmp_path: Path, canary: Path
) -> None:
    path, clean = tmp_path / "a.pth", tmp_path / "clean.pth"
    state = load_architecture("toy_resnet").build(0).state_dict()
    torch.save(state, clean)
    poison = Poison(way, canary)
    write(path, {"args": [poison], "model": state, "last": {1: poison}}, how, protocol)
    backbone = load_backbone(str(path), arch=ARCH)
    assert backbone.facts.weights_hash == load_backbone(str(clean), arch=ARCH).facts.weights_hash


@pytest.mark.parametrize("way", WAYS)
def test_the_poison_works(way: str, tmp_path: Path) -> None:
    """Else nothing above would show anything."""
    other = tmp_path / "other"
    pickle.loads(pickle.dumps(Poison(way, other)))
    assert other.exists()


@pytest.mark.parametrize("ref", ["torchvision/resnet18", "hf-hub:o/n"])
def test_a_download_runs_nothing(
    ref: str, tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Downloads lie in folders that others may write to."""
    from huggingface_hub import constants
    from torchvision.models import ResNet18_Weights

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--o--n"
    snapshot = home / "snapshots" / ("0" * 40)
    name = ResNet18_Weights.DEFAULT.url.rpartition("/")[2]
    for file in (tmp_path / "hub" / "checkpoints" / name, snapshot / "pytorch_model.bin"):
        file.parent.mkdir(parents=True)
        torch.save({"x": Poison("system", canary)}, file)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("0" * 40)
    (snapshot / "config.json").write_text('{"architecture": "resnet18", "num_classes": 10}')
    with pytest.raises(CheckpointError, match="objects beside its tensors") as caught:
        load_backbone(ref)
    assert "weights_only" not in str(caught.value)
