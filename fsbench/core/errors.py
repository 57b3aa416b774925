"""The errors of the suite. Each says what was given, what is allowed and what to do.

Exit codes: 1 run failed, 2 usage, 3 data, 4 checkpoint mismatch, 5 validation failed.
"""

import struct
import zlib
from collections.abc import Iterable
from difflib import get_close_matches

UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, AssertionError, MemoryError, SyntaxError, struct.error, zlib.error),
)
"""Exceptions of libraries for truncated, damaged or foreign files."""


class FsbenchError(Exception):
    """A run failed for a reason that the user can act on; `fix` says how."""

    exit_code = 1

    def __init__(self, message: str, *, fix: str = "") -> None:
        self.message, self.fix = message, fix
        super().__init__(f"{message}\n  fix: {fix}" if fix else message)


class UsageError(FsbenchError):
    """The command or an argument makes no sense."""

    exit_code = 2


CUTOFF = 0.66
"""Least similarity of a name that is proposed, so that unrelated ones are not."""
LISTED = 40
"""Names that a message lists at most."""


def nearest_names(name: str, names: Iterable[str], n: int = 1) -> list[str]:
    """Return up to `n` near names, nearest first; `name` may be cut short or lack its scheme."""
    short = name.lower()
    originals = {original.lower(): original for original in sorted(names, reverse=True)}
    spellings = {lower.rpartition("/")[2]: name for lower, name in originals.items()} | originals
    near = get_close_matches(short, spellings, 2 * n, CUTOFF)
    if len(short) >= 3:
        near += sorted((k for k in originals if k.startswith(short)), key=lambda k: (len(k), k))
    return list(dict.fromkeys(spellings[spelling] for spelling in near))[:n]


class UnknownName(UsageError):
    """A name that nothing knows; the message holds the nearest names, and all if they are few."""

    def __init__(self, kind: str, name: str, allowed: Iterable[str]) -> None:
        names = sorted(allowed)
        few = len(names) <= LISTED
        near = nearest_names(name, names, 1 if few else 3)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        listed = f"known: {', '.join(names) or 'none'}" if few else f"{len(names)} names are known"
        super().__init__(f"unknown {kind} '{name}'", fix=f"{hint}{listed}")


class DataError(FsbenchError):
    """A data set is missing, incomplete, corrupt or too small."""

    exit_code = 3


class CheckpointError(FsbenchError):
    """Weights that do not fit the architecture, or a file that must not be opened."""

    exit_code = 4


class ValidationFailed(FsbenchError):
    """A result, submission or board entry that breaks a rule."""

    exit_code = 5
