"""The analyses of a study between a folder, as a sweep reads and writes it, and the committed file.

    python -m studies.pack_analyses unpack STUDY FOLDER
    python -m studies.pack_analyses pack STUDY FOLDER

The same records give the same bytes.
"""

import lzma
import sys
from pathlib import Path

from support.studies import PACKED, read_analyses

from fsbench.core.io import read_record, replacing, write_record
from fsbench.core.schema import Analysis
from fsbench.results.store import locate_finding


def pack(study: Path, folder: Path) -> None:
    paths = sorted(folder.glob("*/*/analyses/*.json"))
    lines = [read_record(path, Analysis).model_dump_json() + "\n" for path in paths]
    with replacing(study / PACKED) as temporary:
        temporary.write_bytes(lzma.compress("".join(lines).encode()))


def unpack(study: Path, folder: Path) -> None:
    for record in read_analyses(study):
        path = locate_finding(folder, record.backbone, record.question)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, record)


if __name__ == "__main__":
    {"pack": pack, "unpack": unpack}[sys.argv[1]](*map(Path, sys.argv[2:]))
