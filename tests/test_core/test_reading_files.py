"""Files that have no end or are none are refused at once, whoever reads them."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from support import fakes
from support.badges import make_key, needs_ssh_keygen

from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_bytes, read_json, read_mapping
from fsbench.results.entry import read_entry
from fsbench.results.verification import find_entries
from leaderboard.signatures import ENTRY_NAMESPACE, is_signed, read_public_key, sign_file


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


FOREIGN: dict[str, Callable[[Path], None]] = {
    "device": lambda path: path.symlink_to("/dev/zero"),
    "pipe": lambda path: os.mkfifo(path),
    "link to a pipe": lambda path: (os.mkfifo(f"{path}.fifo"), path.symlink_to(f"{path}.fifo"))[1],
    "socket": bind,
    "folder": lambda path: path.mkdir(),
    "endless link": lambda path: path.symlink_to("/proc/self/fd/0/../0"),
    "itself": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.toml"])
def test_what_is_no_file_is_refused_at_once(kind: str, name: str, tmp_path: Path) -> None:
    FOREIGN[kind](tmp_path / name)
    with pytest.raises(OSError):  # noqa: PT011 - each kind has its own message
        read_bytes(tmp_path / name, 100)
    with pytest.raises(ValidationFailed, match=name):
        read_mapping(tmp_path / name, "a")


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"[1]       ")
    assert read_bytes(file, 10) == b"[1]       "
    with pytest.raises(OSError, match="larger than 9 bytes"):
        read_bytes(file, 9)
    assert read_json(file) == [1]


@needs_ssh_keygen
@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_results_and_signatures_are_files(kind: str, tmp_path: Path) -> None:
    for name in ("entry.json", "outcomes"):
        fakes.write(tmp_path / name)
        (folder,) = find_entries(tmp_path / name)
        (path,) = folder.glob(f"{name}*")
        path.unlink()
        FOREIGN[kind](path)
        with pytest.raises(ValidationFailed, match=path.name):
            read_entry(folder)
    key, file = make_key(tmp_path), tmp_path / "signed.json"
    file.write_text("{}")
    signature, keys = sign_file(file, key, ENTRY_NAMESPACE), [read_public_key(key)]
    assert is_signed(file, keys, ENTRY_NAMESPACE)
    signature.unlink()
    FOREIGN[kind](signature)
    assert not is_signed(file, keys, ENTRY_NAMESPACE)
