"""Checkpoints in every wrapping and with every fault: the very weights, or a refusal."""

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fuzz.cases import ARCH, DAMAGE, SIZES, Tally, damage
from fuzz.poison import PREFIXES, WRAPPERS
from hypothesis import strategies as st
from safetensors.torch import save, save_file

from fsbench.backbones import load_backbone
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import CheckpointError

MAGIC_PICKLE = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
State = dict[Any, Any]


@pytest.fixture(scope="module")
def state() -> State:
    torch.manual_seed(5)
    return load_architecture("toy_resnet").build(0).state_dict()


@pytest.fixture
def clean_hash(state: State, tmp_path: Path) -> str:
    """The hash of the weights as they were saved."""
    write(tmp_path / "clean.pth", state, "zip")
    return load_backbone(str(tmp_path / "clean.pth"), arch=ARCH).facts.weights_hash


def changed(change: Callable[[torch.Tensor], object]) -> Callable[[State], State]:
    """A fault of one weight, the first convolution."""

    def apply(s: State) -> State:
        name = next(n for n, t in s.items() if t.ndim == 4)
        return {**s, name: change(s[name])}

    return apply


FAULTS: dict[str, Callable[[State], State]] = {
    "one less": lambda s: dict(list(s.items())[1:]),
    "one more": lambda s: {**s, "layer9.weight": torch.ones(2)},
    "other architecture": lambda s: load_architecture("cnn").build(10).state_dict(),
    "no weights": lambda s: {"epoch": 3},
    "nothing": lambda s: {},
    "numbers for names": lambda s: dict(enumerate(s.values())),
    "in itself": lambda s: s.update(model=s) or s,  # type: ignore[func-returns-value]
    "two sets": lambda s: {"model": s, "model_ema": s},
    "nan": changed(lambda t: t.masked_fill(t == t.flatten()[3], float("nan"))),
    "infinity": changed(lambda t: t.masked_fill(t == t.flatten()[3], float("inf"))),
    "transposed": changed(lambda t: t.transpose(0, 1)),
    "wider": changed(lambda t: torch.cat([t, t])),
    "flat": changed(lambda t: t.reshape(-1)),
    "whole numbers": changed(lambda t: t.long()),
    "complex": changed(lambda t: t.to(torch.complex64)),
    "eight bits": changed(lambda t: t.to(torch.float8_e4m3fn)),
    "quantised": changed(lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8)),
    "sparse": changed(lambda t: t.to_sparse()),
    "without values": changed(lambda t: t.to("meta")),
    "a list": changed(lambda t: t.tolist()),
    "a name": changed(lambda t: "x" * 5000),
}
HARMLESS: dict[str, Callable[[State], State]] = {
    "as it is": lambda s: s,
    "reversed": lambda s: dict(reversed(s.items())),
    "doubles": lambda s: {n: t.double() if t.is_floating_point() else t for n, t in s.items()},
    "with a head": lambda s: {**s, "fc.weight": torch.ones(7, 3), "fc.bias": torch.ones(7)},
    "as views": lambda s: {n: torch.stack([t, t])[0] for n, t in s.items()},
}


def write(path: Path, tree: State, how: str) -> None:
    if how == "safetensors":
        save_file({name: tensor.clone().contiguous() for name, tensor in tree.items()}, path)
    else:
        torch.save(tree, path, _use_new_zipfile_serialization=how == "zip")


WRAPS = st.lists(st.sampled_from(WRAPPERS), max_size=2)
FORMATS = st.sampled_from([("zip", ".pth"), ("legacy", ".tar"), ("zip", ".bin")])


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_only_a_full_match_is_taken(
    size: int, state: State, clean_hash: str, tmp_path: Path, tally: Tally
) -> None:
    """Whatever is taken has the features of the weights that were saved."""

    def check(kind: str, wraps: list[str], prefix: str, form: tuple[str, str]) -> None:
        tree = (HARMLESS | FAULTS)[kind](dict(state))
        if kind not in {"two sets", "numbers for names", "in itself", "no weights"}:
            tree = {prefix + n: v for n, v in tree.items()}
        for wrap in wraps:
            tree = {wrap: tree, "epoch": 3}
        path = tmp_path / f"a{form[1]}"
        write(path, tree, form[0])
        outcome = tally.load(path)
        assert (outcome is not None) == (kind in HARMLESS), (kind, wraps, prefix)
        assert outcome is None or outcome.facts.weights_hash == clean_hash

    kinds = st.sampled_from([*HARMLESS, *HARMLESS, *FAULTS])
    tally.explore(size, check, kinds, WRAPS, st.sampled_from(["", *PREFIXES]), FORMATS)


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_damaged_files(
    size: int, state: State, clean_hash: str, tmp_path: Path, tally: Tally
) -> None:
    """A zip, which has checksums, gives the very weights or none; elsewhere others are others."""
    files: dict[str, bytes] = {}
    for how in ("zip", "legacy", "safetensors"):
        write(tmp_path / "clean", state, how)
        files[how] = (tmp_path / "clean").read_bytes()

    def check(how: str, kind: str, position: int, more: bytes, near_an_end: bool) -> None:
        at = (position % 3000) * (1 if position % 2 else -1) if near_an_end else position
        path = tmp_path / ("a.safetensors" if how == "safetensors" else "a.pth")
        path.write_bytes(damage(files[how], kind, at, more))
        outcome = tally.load(path)
        assert outcome is None or how != "zip" or outcome.facts.weights_hash == clean_hash

    tally.explore(size, check, st.sampled_from([*files]), *DAMAGE, st.booleans())


def test_long_words_and_changed_weights_are_refused(state: State, tmp_path: Path) -> None:
    """torch would look for patterns in a long word for hours, and at no checksum of a zip."""
    path = tmp_path / "a.pth"
    write(path, state, "zip")
    whole = path.read_bytes()
    for data, message in (
        (MAGIC_PICKLE + b"\x80\x02c" + b"x" * 600_000 + b"\ny\n.", "not a readable checkpoint"),
        (damage(whole, "changed", len(whole) // 2, b"x"), "Bad CRC-32"),
    ):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=message):
            load_backbone(str(path), arch=ARCH)


@SIZES
def test_headers_of_safetensors(size: int, state: State, tmp_path: Path, tally: Tally) -> None:
    """A header that states any length, shape or position is read within the file, or refused."""
    whole = save({n: t.contiguous() for n, t in state.items()})
    length = struct.unpack("<Q", whole[:8])[0]
    header, body = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    path = tmp_path / "a.safetensors"

    def check(stated: int | None, name: str, field: str, value: Any) -> None:
        changed = {**header, name: {**header[name], field: value}} if field else header
        text = json.dumps(changed).encode()
        path.write_bytes(struct.pack("<Q", len(text) if stated is None else stated) + text + body)
        outcome = tally.load(path)
        assert outcome is None or stated is None or stated == len(text)

    lengths = st.one_of(st.none(), st.none(), st.integers(0, 2**64 - 1), st.just(length))
    names = st.sampled_from([n for n in header if n != "__metadata__"])
    fields = st.sampled_from(["", "dtype", "shape", "data_offsets"])
    values = st.one_of(
        st.sampled_from(["F32", "F64", "BF16", "I64", "F8_E4M3", "C64", "?", None, -1]),
        st.lists(st.integers(-1, 2**63), max_size=4),
        st.text(max_size=5),
    )
    tally.explore(size, check, lengths, names, fields, values)
