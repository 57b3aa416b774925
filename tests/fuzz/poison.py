"""Pickles that run something: every way to name a function, in every position of a checkpoint."""

import builtins
import os
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

WRAPPERS = ("state_dict", "model", "model_state_dict", "state_dict_ema", "model_ema")
WRAPPERS += ("teacher", "student", "state")
PREFIXES = ("module.", "_orig_mod.", "teacher.backbone.", "momentum_encoder.")
PREFIXES += ("backbone.", "encoder.", "model.", "feature.")
"""Wrappers and prefixes of common training programs."""
POSITIONS = (*WRAPPERS, "args", "optimizer", "0")


class Poison:
    """Makes the file `canary` when it is unpickled."""

    def __init__(self, way: str, canary: Path) -> None:
        self.way, self.canary = way, canary

    def __reduce__(self) -> tuple[Any, ...]:
        path = str(self.canary)
        return {
            "system": (os.system, (f"touch {path}",)),
            "eval": (builtins.eval, (f"open({path!r}, 'w').close()",)),
            "open": (builtins.open, (path, "w")),
            "touch": (Path.touch, (Path(path),)),
            "getattr": (getattr(os, "system"), (f"touch {path}",)),  # noqa: B009
        }[self.way]


WAYS = ("system", "eval", "open", "touch", "getattr")


OPCODES = (
    b"cos\nsystem\n(VCOMMAND\ntR.",
    b"(S'COMMAND'\nios\nsystem\n.",
    b"(cos\nsystem\nVCOMMAND\no.",
    b"\x80\x04\x8c\x02os\x8c\x06system\x93VCOMMAND\n\x85R.",
    b"(dVCOMMAND\n(S'COMMAND'\nios\nsystem\ns.",
    b"c__builtin__\neval\n(V__import__('os').system('COMMAND')\ntR.",
    b"ctorch\nload\n(VCOMMAND\ntR.",
)
"""Pickles written by hand: the old opcodes that pickle.dumps does not use."""


@st.composite
def trees(draw: st.DrawFn, tensors: dict[str, Any], canary: Path) -> dict[Any, Any]:
    """A checkpoint with a poisoned value at the top, in a wrapper, in a list, or among weights."""
    poison = Poison(draw(st.sampled_from(WAYS)), canary)
    wrapper, position = draw(st.sampled_from(WRAPPERS)), draw(st.sampled_from(POSITIONS))
    return draw(
        st.sampled_from(
            [
                {wrapper: dict(tensors), position + "_": poison},
                {wrapper: {**tensors, position: poison}},
                {wrapper: {**tensors, position: [poison]}},
                {wrapper: {wrapper: {**tensors, position: (1, {2: poison})}}},
                {position: poison},
                {**tensors, position: poison},
                {wrapper: poison, "more": tensors},
            ]
        )
    )
