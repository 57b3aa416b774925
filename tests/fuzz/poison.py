"""Pickles that run something: every way to name a function, in every place of a checkpoint."""

import builtins
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from support.checkpoints import WRAPPERS

PLACES = (*WRAPPERS, "args", "optimizer", "0")


class Poison:
    """Makes the file `canary` when it is unpickled."""

    def __init__(self, way: str, canary: Path) -> None:
        self.way, self.canary = way, canary

    def __reduce__(self) -> tuple[Any, ...]:
        path = str(self.canary)
        return {
            "system": (os.system, (f"touch {path}",)),
            "eval": (builtins.eval, (f"open({path!r}, 'w').close()",)),
            "exec": (builtins.exec, (f"open({path!r}, 'w').close()",)),
            "open": (builtins.open, (path, "w")),
            "mkdir": (os.mkdir, (path,)),
            "touch": (Path.touch, (Path(path),)),
            "copy": (shutil.copy, (__file__, path)),
            "getattr": (getattr(os, "system"), (f"touch {path}",)),  # noqa: B009
            "makedirs": (os.makedirs, (path,)),
        }[self.way]


WAYS = ("system", "eval", "exec", "open", "mkdir", "touch", "copy", "getattr", "makedirs")


def raw(way: int, canary: Path) -> bytes:
    """Pickles written by hand: the old opcodes that pickle.dumps does not use."""
    text = f"touch {canary}".encode()
    return (
        b"cos\nsystem\n(V" + text + b"\ntR.",
        b"(S'" + text + b"'\nios\nsystem\n.",
        b"(cos\nsystem\nV" + text + b"\no.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93V" + text + b"\n\x85R.",
        b"(dV" + text + b"\n(S'" + text + b"'\nios\nsystem\ns.",
        b"c__builtin__\neval\n(V__import__('os').system('" + text + b"')\ntR.",
        b"ctorch\nload\n(V" + str(canary).encode() + b"\ntR.",
    )[way]


N_RAW = 7


@st.composite
def trees(draw: st.DrawFn, tensors: dict[str, Any], canary: Path) -> dict[Any, Any]:
    """A checkpoint with a poisoned value at the top, in a wrapper, in a list, or among weights."""
    poison = Poison(draw(st.sampled_from(WAYS)), canary)
    wrapper, place = draw(st.sampled_from(WRAPPERS)), draw(st.sampled_from(PLACES))
    return draw(
        st.sampled_from(
            [
                {wrapper: dict(tensors), place + "_": poison},
                {wrapper: {**tensors, place: poison}},
                {wrapper: {**tensors, place: [poison]}},
                {wrapper: {wrapper: {**tensors, place: (1, {2: poison})}}},
                {place: poison},
                {**tensors, place: poison},
                {wrapper: poison, "more": tensors},
            ]
        )
    )


def dumped(tree: object, protocol: int) -> bytes:
    return pickle.dumps(tree, protocol)
