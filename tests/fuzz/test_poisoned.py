"""Checkpoints with code in every wrapper: it never runs, and weights beside it are read."""

import pickle
from pathlib import Path

import pytest
import torch
from fuzz.cases import SIZES, Tally
from fuzz.poison import N_RAW, WAYS, Poison, dumped, raw, trees
from hypothesis import strategies as st
from support.cli import call

from fsbench.backbones import load_backbone
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import CheckpointError

ARCH = "fsbench/toy_resnet"
TENSORS = {"stem.weight": torch.ones(3), "bn.weight": torch.zeros(2)}
SUFFIXES = st.sampled_from([".pth", ".pt", ".ckpt", ".bin", ".tar", ".safetensors"])


def write(path: Path, tree: object, how: str, protocol: int) -> None:
    if how == "pickle":
        path.write_bytes(dumped(tree, protocol))
    else:
        torch.save(
            tree,
            path,
            pickle_protocol=protocol,
            _use_new_zipfile_serialization=how == "zip",
        )


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_no_pickle_runs(size: int, tmp_path: Path, canary: Path, tally: Tally) -> None:
    def check(tree: object, how: str, protocol: int, suffix: str) -> None:
        path = tmp_path / f"a{suffix}"
        write(path, tree, how, protocol)
        outcome = tally.attempt(
            lambda: load_backbone(str(path), arch=ARCH), CheckpointError, str(path)
        )
        assert outcome is None  # the tensors are not those of the architecture
        assert not canary.exists()

    tally.ended["taken"] = 1
    hows, protocols = st.sampled_from(["zip", "legacy", "pickle"]), st.integers(0, 5)
    tally.explore(size + 1, check, trees(TENSORS, canary), hows, protocols, SUFFIXES)
    assert tally.ended.pop("taken") == 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", range(N_RAW))
@pytest.mark.parametrize("how", ["alone", "in a zip"])
def test_no_opcode_runs(way: int, how: str, tmp_path: Path, canary: Path) -> None:
    import zipfile

    path = tmp_path / "a.pth"
    torch.save({"x": torch.ones(1)}, path)
    if how == "alone":
        path.write_bytes(raw(way, canary))
    else:
        with zipfile.ZipFile(path) as old:
            members = {i.filename: old.read(i) for i in old.infolist()}
        with zipfile.ZipFile(path, "w") as new:
            for name, data in members.items():
                new.writestr(name, raw(way, canary) if name.endswith("data.pkl") else data)
    with pytest.raises(CheckpointError):
        load_backbone(str(path), arch=ARCH)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("protocol", [2, 4, 5])
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
    assert not canary.exists()


@pytest.mark.parametrize("way", WAYS)
def test_the_poison_works(way: str, canary: Path, tmp_path: Path) -> None:
    """Else nothing above would show anything."""
    other = tmp_path / "other"
    pickle.loads(pickle.dumps(Poison(way, other)))
    assert other.exists()


@pytest.mark.parametrize("how", ["zip", "legacy", "pickle"])
def test_the_command_line_refuses(
    how: str, tmp_path: Path, canary: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "a.pth", tmp_path / "out"
    write(path, {"model": {"w": torch.ones(1)}, "x": Poison("system", canary)}, how, 2)
    code = call("episodic", "-m", str(path), "--arch", ARCH, "-t", "toy_scan:2w1s", "-o", str(out))
    shown = capfd.readouterr().err
    assert code == 4, shown
    assert "a.pth" in shown
    assert "Traceback" not in shown
    assert not out.exists()


def test_a_hub_file_runs_nothing(
    tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torchvision's own files lie in a folder that others may write to."""
    from torchvision.models import ResNet18_Weights

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    name = ResNet18_Weights.DEFAULT.url.rpartition("/")[2]
    torch.save({"x": Poison("system", canary)}, folder / name)
    with pytest.raises(CheckpointError, match="objects beside its tensors") as caught:
        load_backbone("torchvision/resnet18")
    assert "weights_only" not in str(caught.value)


def test_a_hub_repository_runs_nothing(
    tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--o--n"
    snapshot = home / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("0" * 40)
    (snapshot / "config.json").write_text('{"architecture": "resnet18", "num_classes": 10}')
    torch.save({"x": Poison("system", canary)}, snapshot / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="objects beside its tensors") as caught:
        load_backbone("hf-hub:o/n")
    assert "weights_only" not in str(caught.value)
