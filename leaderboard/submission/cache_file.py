"""Files of a cache: content that is valid for one key, and protected by its digest.

    fsbench-cache <key> <sha-256 of the rest>
    <content>

A file that is damaged or of another key is ignored. The digest protects against damage, not against
the owner of the cache folder, who can change the code as well: never use a cache file of another
user.
"""

import hashlib
import platform
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pydantic

from fsbench.core.io import replacing

MAGIC = b"fsbench-cache"
PACKAGES = ("fsbench.core", "fsbench.data", "fsbench.results", "leaderboard", "protocols")
"""Packages that read and check results; the files of the protocols declare valid settings."""


class UnusableCache(Exception):
    """Why a cache file cannot be used."""


class OtherKey(UnusableCache):
    """A cache file is whole, but its content is valid for another key."""


def write_cache(path: Path, key: str, *content: bytes | memoryview) -> None:
    """Write a cache file by rename. Raises OSError."""
    digest = hashlib.sha256()
    for part in content:
        digest.update(part)
    head = b" ".join([MAGIC, key.encode(), digest.hexdigest().encode()])
    with replacing(path) as temporary, temporary.open("wb") as out:
        out.write(head + b"\n")
        out.writelines(content)


def read_cache(path: Path, key: str) -> bytes | None:
    """Return the content of a cache file, None if there is none. Raises UnusableCache, OtherKey."""
    try:
        with path.open("rb") as file:
            head, body = file.readline(200), file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableCache(f"cannot be read ({error.strerror})") from error
    words = head.removesuffix(b"\n").split(b" ")
    if not head.endswith(b"\n") or len(words) != 3 or words[0] != MAGIC:
        raise UnusableCache("is damaged")
    if words[1] != key.encode():
        raise OtherKey("was written for another key")
    if words[2] != hashlib.sha256(body).hexdigest().encode():
        raise UnusableCache("is damaged")
    return body


@cache
def compute_code_version() -> str:
    """Return a digest over everything that reads and checks results, 64 hexadecimal digits.

    It covers the sources of PACKAGES and the versions of Python, NumPy and pydantic: wider than
    needed, so that no change of a check is missed.
    """
    versions = (platform.python_version(), np.__version__, pydantic.VERSION)
    digest = hashlib.sha256(" ".join(versions).encode())
    for file in list_sources():
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"\n{file.parent.name}/{file.name} {content}".encode())
    return digest.hexdigest()


def list_sources() -> list[Path]:
    """Return the modules of PACKAGES and of their subpackages, and fsbench/__init__.py."""
    specs = [find_spec(name) for name in PACKAGES]
    folders = [Path(p) for spec in specs if spec for p in spec.submodule_search_locations or ()]
    modules = [file for folder in folders for file in list_modules(folder)]
    package = find_spec("fsbench")
    return [Path(package.origin), *modules] if package and package.origin else modules


def list_modules(package: Path) -> Iterator[Path]:
    """Yield the modules of a package, then those of its subpackages; other folders hold data."""
    yield from sorted(package.glob("*.py"))
    for init in sorted(package.glob("*/__init__.py")):
        yield from list_modules(init.parent)
