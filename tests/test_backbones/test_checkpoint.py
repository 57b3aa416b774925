"""Files of others: what opens, what is refused, and that nothing in them runs."""

import argparse
import builtins
import collections
import enum
import functools
import os
import shutil
import struct
import sys
import tempfile
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fsbench.backbones import checkpoint, pickles
from fsbench.core.errors import CheckpointError

TENSORS = {"conv1.weight": torch.arange(6.0).view(2, 3)}


class Choice(enum.Enum):
    FIRST = 1


class Settings(dict[str, int]):
    """A dictionary with an attribute, as EasyDict and CfgNode are."""


class Steps(list[int]):
    """A list, as those of OmegaConf are."""


class Slotted:
    """Pickled as a pair of states, and with keyword arguments, in protocol 2 a partial function."""

    __slots__ = ("value",)

    def __getnewargs_ex__(self) -> tuple[tuple[int, ...], dict[str, int]]:
        return (1,), {"more": 2}

    def __new__(cls, *args: int, **options: int) -> "Slotted":
        value = super().__new__(cls)
        value.value = 1
        return value


def absent_object() -> object:
    """Return an object whose package is gone when it is read."""
    module = types.ModuleType("package_that_is_absent")
    kind = type("HistoryBuffer", (), {"__module__": module.__name__})
    module.HistoryBuffer = kind
    sys.modules[module.__name__] = module
    value: Any = kind()
    value.history = np.arange(3.0)
    return value


FOREIGN: dict[str, Callable[[], object]] = {
    "an absent class": absent_object,
    "an array": lambda: np.arange(6).reshape(2, 3),
    "an array of objects": lambda: np.array([{}, "x"], dtype=object),
    "a generator of NumPy": lambda: np.random.default_rng(0),
    "a member of an enumeration": lambda: Choice.FIRST,
    "a key": lambda: {Choice.FIRST: 1, Path("a"): 2},
    "a partial function": lambda: functools.partial(os.path.join, "a"),
    "a function": lambda: shutil.rmtree,
    "a method": lambda: "x".join,
    "a subclass of dict": lambda: Settings(lr=1),
    "a default dictionary": lambda: collections.defaultdict(list, {"a": [1]}),
    "a subclass of list": lambda: Steps([1, 2]),
    "slots and keywords": Slotted,
    "a frozen set": lambda: frozenset({1}),
    "a long number": lambda: 2**2000,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("how", "protocol"), [("zip", 2), ("zip", 4), ("legacy", 2)])
@pytest.mark.parametrize("what", FOREIGN)
def test_any_object_beside_the_weights(
    what: str, how: str, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is imported, not even what is imported already."""
    path = tmp_path / "last.pth"
    tree = {"state_dict": TENSORS, "extra": FOREIGN[what](), "epoch": 3}
    torch.save(tree, path, pickle_protocol=protocol, _use_new_zipfile_serialization=how == "zip")
    monkeypatch.delitem(sys.modules, "package_that_is_absent", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse_foreign_imports)
    read = checkpoint.read_checkpoint(path)
    assert torch.equal(read["state_dict"]["conv1.weight"], TENSORS["conv1.weight"])
    assert read["epoch"] == 3


original_import = builtins.__import__


def refuse_foreign_imports(name: str, *args: Any, **options: Any) -> Any:
    if name in {"package_that_is_absent", "shutil", "datetime", "fractions", __name__}:
        raise AssertionError(f"{name} is imported")
    return original_import(name, *args, **options)


KINDS = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool,
         torch.uint8, torch.complex64, torch.int8, torch.int32)  # fmt: skip
LEAVES = st.builds(
    lambda kind, shape, cut: torch.arange(24).view(shape).to(kind)[cut:],
    st.sampled_from(KINDS), st.sampled_from([(24,), (4, 6), (2, 3, 4)]), st.integers(0, 4),
)  # fmt: skip
NAMES = st.text("abc.", min_size=1, max_size=3)
TREES = st.recursive(LEAVES, lambda tree: st.dictionaries(NAMES, tree, min_size=1), max_leaves=6)
TURNED = {
    "turned": torch.arange(12.0).view(3, 4).t(), "parameter": nn.Parameter(torch.ones(2, 2)),
    "number": torch.tensor(3.0), "empty": torch.empty(0, 3), "wide": torch.ones(1).expand(5),
}  # fmt: skip


@settings(max_examples=40)
@given(tree=st.dictionaries(st.text("xyz", min_size=1), TREES, min_size=1),
       zipped=st.booleans(), more=st.sampled_from([{}, TURNED]))  # fmt: skip
def test_tensors_are_those_of_torch(tree: dict[str, Any], zipped: bool, more: Any) -> None:
    """The reference is torch.load on the same file."""
    with tempfile.NamedTemporaryFile(suffix=".pth") as file:
        torch.save(tree | more, file.name, _use_new_zipfile_serialization=zipped)
        expected = torch.load(file.name, weights_only=True)
        read = checkpoint.read_checkpoint(Path(file.name))
    compare(read, expected)


def compare(read: Any, expected: Any) -> None:
    """Names in one order; tensors and numbers equal."""
    if isinstance(expected, dict):
        assert list(read) == list(expected)
        for name in expected:
            compare(read[name], expected[name])
    else:
        torch.testing.assert_close(read, expected, rtol=0, atol=0, equal_nan=True)


def build_network() -> nn.Module:
    block = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4))
    network = nn.Sequential(nn.Conv2d(3, 4, 3), block)
    network.register_buffer("scale", torch.ones(2))
    network.register_buffer("temporary", torch.ones(2), persistent=False)
    network.register_parameter("nothing", None)
    return network


@pytest.mark.parametrize("how", ["zip", "legacy"])
def test_a_pickled_network_is_its_state_dict(tmp_path: Path, how: str) -> None:
    path, network = tmp_path / "a.pt", build_network()
    expected = network.state_dict()
    parallel = {f"module.{name}": value for name, value in expected.items()}
    for saved, weights in (
        (network, expected),
        ({"model": network, "epoch": 3}, {"model": expected, "epoch": 3}),
        (argparse.Namespace(model=network), {"model": expected}),
        ({"model": nn.DataParallel(network)}, {"model": parallel}),
    ):
        torch.save(saved, path, _use_new_zipfile_serialization=how == "zip")
        compare(checkpoint.read_checkpoint(path), weights)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", [torch.jit.trace, torch.jit.script])
def test_a_torchscript_archive_is_its_state_dict(tmp_path: Path, how: Any) -> None:
    network = build_network()[1].eval().half()
    program: Any = how(network, torch.zeros(1, 4, 8, 8, dtype=torch.half))
    program.save(str(tmp_path / "a.pt"))
    read = checkpoint.read_checkpoint(tmp_path / "a.pt")
    expected = dict(network.state_dict())
    assert read.keys() == expected.keys()
    compare({name: read[name] for name in expected}, expected)


def test_settings_beside_the_weights_are_read_without_their_classes(tmp_path: Path) -> None:
    args = argparse.Namespace(model="resnet50", lr=0.1, output=Path("out"), best=np.float64(0.5))
    torch.save({"state_dict": TENSORS, "args": args}, tmp_path / "last.pth.tar")
    tree = checkpoint.read_checkpoint(tmp_path / "last.pth.tar")
    assert type(tree["args"]).__name__ == "argparse.Namespace"
    assert checkpoint.named_architecture(tree) == "resnet50"


def word(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def nested_networks(depth: int) -> bytes:
    """A pickle of networks that contain the one before twice: 2 ** depth in the end."""
    data = b"\x80\x02ca\nb\n)\x81"
    for i in range(depth):
        twice = b"(" + word("a") + b"h%c" % i + word("b") + b"h%cu" % i
        state = [word(name) + b"}" for name in ("_parameters", "_buffers", "_modules")] + [twice]
        data += b"q%cca\nb\n)\x81}(" % i + b"".join(state) + b"ub"
    return data + b"."


BOMBS = {
    "a place in memory": b"\x80\x02}r" + struct.pack("<I", 2**31) + b".",
    "a place as text": b"\x80\x02}p2147483648\n.",
    "a class of an extension": b"\x80\x02\x82\x01.",
    "a long number": b"\x80\x02\x8b" + struct.pack("<i", 4096) + b"\x7f" * 4096 + b".",
    "many classes": b"\x80\x02" + b"".join(b"ca\nb%d\n0" % i for i in range(10_001)) + b"}.",
    "networks in networks": nested_networks(60),
}


@pytest.mark.parametrize("what", BOMBS)
def test_a_small_file_uses_little_memory(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pickles, "MOST_OBJECTS", 10_000)
    path = tmp_path / "a.pth"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", BOMBS[what])
    with pytest.raises(CheckpointError, match=r"checkpoint: (ValueError|UnpicklingError)"):
        checkpoint.read_checkpoint(path)


def test_a_list_is_no_checkpoint(tmp_path: Path) -> None:
    torch.save([torch.ones(1)], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="holds a list"):
        checkpoint.read_checkpoint(tmp_path / "list.pth")


def test_a_view_of_a_storage_starts_where_torch_before_0_4_says() -> None:
    tree = pickles.Tree(lambda key: torch.arange(6.0).numpy().tobytes())
    storage = ("storage", type("torch.FloatStorage", (), {}), "0", "cpu", 6, ("1", 2, 4))
    assert tree.tensor(storage, 1, (2,), (1,)).tolist() == [3.0, 4.0]
