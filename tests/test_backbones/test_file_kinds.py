"""Files that are no whole checkpoint: each is named, with what to do; folders open."""

import gzip
import io
import json
import os
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from huggingface_hub import save_torch_state_dict
from safetensors.torch import save_file
from support.cases import read_cases
from timm.models import save_for_hf
from torch import Tensor

from fsbench import backbones
from fsbench.backbones import checkpoint
from fsbench.backbones.base import weights_hash
from fsbench.backbones.loading import make_request
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.seeding import stream

Weights = dict[str, Tensor]
TENSORS = {"conv1.weight": torch.arange(6.0).view(2, 3)}


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, "x" * 100)
    return buffer.getvalue()


GOLDEN = read_cases("foreign_files")
KINDS: dict[str, tuple[bytes, str, str]] = {
    **{kind: (row[0].encode("latin-1"), *row[1:]) for kind, row in GOLDEN["kinds"].items()},
    "keras 3": (zipped("metadata.json", "config.json", "model.weights.h5"), "Keras", "weights"),
    "npz": (zipped("a.npy", "b/c.npy"), "a set of NumPy arrays", "timm reads"),
    "old pickle": (pickle.dumps({"a": 1}, 2), r"a pickle that torch\.save did not", r"torch\.save"),
    "new pickle": (pickle.dumps({"a": 1}, 5), r"a pickle that torch\.save did not", r"torch\.save"),
    "pickled text": (pickle.dumps({"a": 1}, 0), r"a pickle that torch\.save did not", "tensors"),
    "gzip": (gzip.compress(b"x" * 100), "a compressed file", "unpack it"),
    "tar": (b"weights.pth".ljust(257, b"\0") + b"ustar", "a tar archive", "unpack it"),
    "zip": (zipped("weights/a.pth", "readme.txt"), "a zip archive that torch did not", "unpack"),
    "export": (zipped("m/archive_format", "m/models/model.json"), r"torch\.export", r"torch\.save"),
    "jit 1.0": (zipped("m/model.json", "m/tensors/0"), r"torch\.jit 1\.0", r"torch\.save"),
    "noise": (bytes(range(200, 256)) * 20, "first bytes are of no known format", "download"),
    "cut zip": (zipped("a/data.pkl")[:60], "is cut", "fetch"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_kind_is_named_before_any_work(kind: str, tmp_path: Path) -> None:
    """The name of a file does not count, and the architecture is not blamed."""
    data, name, fix = KINDS[kind]
    path = tmp_path / "a.safetensors"
    path.write_bytes(data)
    for ref in (str(path), f"{path}@test_resnet"):
        with pytest.raises(CheckpointError, match=name) as caught:
            make_request(ref).check()
        assert str(path) in caught.value.message
        assert re.search(fix, caught.value.fix)
        assert "arch" not in str(caught.value).replace("archive", "")
    make_request(f"{path}@test_resnet", random_init=0).check()


def test_a_checkpoint_of_tensorflow_is_named(tmp_path: Path) -> None:
    for name in ("m.ckpt-1.index", "m.ckpt-1.data-00000-of-00001", "m.ckpt-1.meta"):
        (tmp_path / name).write_bytes(b"\0\x11\x02\xf5" * 90)
        with pytest.raises(CheckpointError, match="a checkpoint of TensorFlow"):
            checkpoint.read_checkpoint(tmp_path / name)


@pytest.mark.parametrize("write", [torch.save, save_file])
@pytest.mark.parametrize("name", ["a", "a.pth", "a.tar", "a.safetensors"])
def test_the_name_of_a_file_does_not_count(
    name: str, write: Callable[..., None], tmp_path: Path
) -> None:
    write(TENSORS, tmp_path / name)
    read = checkpoint.read_checkpoint(tmp_path / name)
    assert torch.equal(read["conv1.weight"], TENSORS["conv1.weight"])


def test_a_broken_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.pth").symlink_to(".git/annex/objects/x")
    with pytest.raises(UsageError, match="no backbone") as caught:
        backbones.load_backbone(str(tmp_path / "a.pth"), arch="test_resnet")
    assert "links to a missing file, .git/annex/objects/x" in caught.value.fix
    assert "git annex get" in caught.value.fix


@pytest.fixture
def weights() -> Weights:
    with stream("kinds"):
        return timm.create_model("test_resnet", num_classes=0).state_dict()


def write_shards(folder: Path, weights: Weights, safe: bool = True) -> list[Path]:
    """Write shards as the hub's libraries do; return their index and the shards."""
    save_torch_state_dict(weights, folder, max_shard_size=800_000, safe_serialization=safe)
    return [*folder.glob("*.index.json"), *sorted(folder.glob("*-of-*"))]


@pytest.mark.parametrize("safe", [True, False])
def test_one_shard_or_the_index_opens_all(safe: bool, weights: Weights, tmp_path: Path) -> None:
    index, first, second, *others = write_shards(tmp_path, weights, safe)
    for path in (index, first, *others):
        check_folder(f"{path}@test_resnet", weights)
    second.unlink()
    for path in (index, first, *others):
        with pytest.raises(CheckpointError, match=rf"one of \d shards.*{second.name}"):
            checkpoint.read_checkpoint(path)


def timm_folder(folder: Path, name: str = "test_resnet", **arguments: Any) -> Weights:
    """Write a folder as timm does; return the weights without the head."""
    with stream("kinds", name):
        model = timm.create_model(name, num_classes=5, **arguments)
    save_for_hf(model, folder, model_args=arguments or None, safe_serialization=True)
    model.reset_classifier(0)
    return model.state_dict()


def check_folder(ref: Path | str, weights: Weights) -> Any:
    """Return the facts of a reference to these weights."""
    facts = backbones.load_backbone(str(ref)).facts
    assert facts.weights_hash == weights_hash(weights)
    return facts


def test_a_folder_of_timm_opens_through_its_config(tmp_path: Path) -> None:
    weights = timm_folder(tmp_path)
    for ref in (tmp_path, f"{tmp_path}@test_resnet"):
        facts = check_folder(ref, weights)
        config = json.loads((tmp_path / "config.json").read_text())["pretrained_cfg"]
        assert [facts.input_size, [*facts.mean]] == [config["input_size"][-1], config["mean"]]
        assert facts.stated_by["mean"] == "config.json"
    with pytest.raises(UsageError, match="does not state the architecture") as caught:
        backbones.load_backbone(str(tmp_path / "model.safetensors"))
    assert "config.json beside it names test_resnet" in caught.value.fix
    assert caught.value.fix.endswith(f"pass {tmp_path}")
    (tmp_path / "model.safetensors").unlink()
    for path in (tmp_path, write_shards(tmp_path, weights)[0]):
        check_folder(path, weights)


def test_a_folder_of_timm_with_arguments(tmp_path: Path) -> None:
    weights = timm_folder(tmp_path, "test_vit", img_size=96)
    config = json.loads((tmp_path / "config.json").read_text())
    for arguments in ({"img_size": 96, "num_classes": 5}, {"img_size": [96, 96]}):
        (tmp_path / "config.json").write_text(json.dumps({**config, "model_args": arguments}))
        check_folder(tmp_path, weights)
    # no reference can state it
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_args": {"layers": [1, 2]}}))
    with pytest.raises(UsageError, match="layers"):
        backbones.load_backbone(str(tmp_path))


def test_a_folder_of_transformers_opens_through_its_config(tmp_path: Path) -> None:
    """It is the network that transformers:DIR gives."""
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1])
    with stream("kinds"):
        transformers.ResNetModel(config).save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_std": [0.25, 0.25, 0.25]}')
    reference = backbones.load_backbone(f"transformers:{tmp_path}").facts
    facts = backbones.load_backbone(str(tmp_path)).facts
    assert facts.std == (0.25, 0.25, 0.25)
    assert facts.model_dump(exclude={"ref", "source"}) == reference.model_dump(
        exclude={"ref", "source"}
    )
    control = backbones.load_backbone(str(tmp_path), random_init=3).facts
    assert control.weights_hash != reference.weights_hash


@pytest.mark.parametrize(("name", "kind"), read_cases("backbones")["folders"])
def test_another_folder_is_named(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    for ref in (f"{tmp_path}@test_resnet", f"{tmp_path}/"):
        with pytest.raises(UsageError, match="is a folder") as caught:
            backbones.load_backbone(ref)
        assert kind in caught.value.fix
        assert "timm/" not in str(caught.value)


@pytest.mark.parametrize("ref", ["/nowhere/model", "./model.th", "~/a.pth"])
def test_a_path_that_is_not_there(ref: str) -> None:
    with pytest.raises(UsageError, match="no backbone") as caught:
        backbones.load_backbone(ref)
    assert "there is no such file" in caught.value.fix
    assert f"timm{ref}" not in caught.value.fix


def test_a_named_pipe_is_not_opened(tmp_path: Path) -> None:
    """Reading it would wait for ever."""
    os.mkfifo(tmp_path / "a.pth")
    with pytest.raises(UsageError, match="no backbone"):
        backbones.load_backbone(str(tmp_path / "a.pth"), arch="test_resnet")
