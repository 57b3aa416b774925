"""Kinds of files by their first bytes: how weights are stored, and what a file without them is."""

import re
import zipfile
from pathlib import Path

from fsbench.backbones.pickles import MAGIC, MAGIC_NUMBER
from fsbench.core import io
from fsbench.core.errors import CheckpointError

SUFFIXES = (".safetensors", ".pth", ".pt", ".ckpt", ".bin", ".tar")
HEAD = 1024
"""Bytes that are looked at."""

KINDS = io.read_table(Path(__file__).with_suffix(".yaml"))
FIXES: dict[str, str] = KINDS["fixes"]


def find_format(path: Path) -> str:
    """Return how the weights of a file are stored: safetensors, zip, or legacy (torch < 1.6).

    Raises CheckpointError for files of other kinds, naming the kind.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
    members: list[str] = []
    if head.startswith(b"PK\x03\x04") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    if any(name.split("/")[1:] == ["data.pkl"] for name in members):
        return "zip"
    if head[8:9] == b"{" and not any(head[5:8]):
        return "safetensors"
    if MAGIC in head[:32] or head.startswith(b"L%dL" % MAGIC_NUMBER):
        return "legacy"
    if not head or (head.startswith(b"PK") and not members):
        raise CheckpointError(f"{path} is cut: its end is missing", fix="fetch or save it again")
    kinds = [row[1:] for row in KINDS["bytes"] if re.match(row[0].encode(), head, re.DOTALL)]
    for by, names in (("zip", members), ("name", [path.name])):
        kinds += [row[1:] for row in KINDS[by] if any(re.fullmatch(row[0], n) for n in names)]
    kind, fix = kinds[0]
    raise CheckpointError(f"{path} is {kind}, not a file of weights", fix=FIXES.get(fix, fix))
