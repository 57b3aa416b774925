"""Versions of the evaluation, by protocol and input size: no table holds numbers of two of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

EPISODIC = re.compile(r"@([\w-]+) (\d+px)")
SIZE = re.compile(r" (\d+px)")


def by_version(columns: Iterable[str]) -> dict[str, list[str]]:
    """Version (`ibm 64px`) -> its columns, each once, in the order given.

    columns: as Result.column says. A probe knows no protocol: it stands with every version of its
    input size, alone (`64px`) where there is none. Without columns there is one version, ''.
    """
    names = list(dict.fromkeys(columns))
    episodic = {name: found.groups() for name in names if (found := EPISODIC.search(name))}
    keys: dict[str, tuple[str | None, str]] = {
        f"{protocol} {size}": (protocol, size) for protocol, size in episodic.values()
    }
    sizes = {name: SIZE.findall(name)[0] for name in names}
    taken = {size for _, size in keys.values()}
    keys |= {size: (None, size) for size in sizes.values() if size not in taken}
    versions = {
        version: [n for n in names if episodic.get(n, key) == key and sizes[n] == key[1]]
        for version, key in keys.items()
    }
    return versions or {"": []}
