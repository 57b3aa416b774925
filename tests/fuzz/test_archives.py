"""Archives of data sets: files below their folder, or a refusal that leaves nothing behind."""

import gzip
import struct
import tarfile
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest
from fuzz.cases import SIZES, Tally
from hypothesis import strategies as st

from fsbench.core.errors import DataError
from fsbench.data import download
from fsbench.data.download import extract_archive

Member = tuple[str, bytes, str]
"""Name, content, kind: file, link (out of the folder), or a size that is stated wrongly."""


def zipped(members: Sequence[Member]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, kind in members:
            info = zipfile.ZipInfo(name)
            if kind == "link":
                info.external_attr = 0o120777 << 16
            archive.writestr(info, data)
    return out.getvalue()


def tarred(members: Sequence[Member]) -> bytes:
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data, kind in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if kind == "link":
                info.type, info.linkname, info.size = tarfile.SYMTYPE, "../../outside", 0
            if kind == "large":
                info.size = 10**14
                out.write(info.tobuf(tarfile.GNU_FORMAT))
                continue
            archive.addfile(info, BytesIO(data))
    return out.getvalue()


MAKERS = {".zip": zipped, ".tar": tarred, ".tgz": lambda m: gzip.compress(tarred(m))}
NAMES = st.one_of(
    st.sampled_from(["a", "a/b.jpg", "c/d/e.png", "./f", "a/b.jpg"]),
    st.sampled_from(
        ["../outside", "/tmp/outside", "a/../../outside", "..\\outside", "C:x", "a\x00b"]
    ),
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=5),
    st.just("n" * 300),
)
KINDS = st.sampled_from(["file", "file", "file", "link", "large"])
MEMBERS = st.one_of(
    st.lists(st.tuples(NAMES, st.binary(max_size=30), KINDS), max_size=4),
    st.lists(
        st.tuples(st.sampled_from("abc"), st.binary(max_size=30), st.just("file")),
        max_size=4,
        unique_by=lambda member: member[0],
    ),
)


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_archives(size: int, tmp_path: Path, tally: Tally) -> None:
    """Nothing is written outside, and a refusal leaves the folder as it was."""
    home = tmp_path / "x" / "y" / "set"
    home.mkdir(parents=True)

    def check(members: list[Member], suffix: str, damage: str, place: int) -> None:
        data = MAKERS[suffix](members)
        at = place % len(data)
        damaged = {"": data, "cut": data[:at], "changed": data[:at] + b"\xff" + data[at + 1 :]}
        archive = tmp_path / f"a{suffix}"
        archive.write_bytes(damaged[damage])
        outcome = tally.attempt(lambda: (extract_archive(archive, home),), DataError, archive.name)
        assert {p.name for p in tmp_path.iterdir()} <= {"x", "a.zip", "a.tar", "a.tgz"}
        assert [p.name for p in (tmp_path / "x").iterdir()] == ["y"]
        assert [p.name for p in (tmp_path / "x" / "y").iterdir()] == ["set"]
        left = list(home.rglob("*"))
        assert outcome is not None or not left
        assert not any(path.is_symlink() for path in left)
        for path in sorted(left, reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()

    damages = st.sampled_from(["", "", "cut", "changed"])
    tally.explore(size, check, MEMBERS, st.sampled_from([*MAKERS]), damages, st.integers(0, 9999))


def test_a_zip_with_an_entry_before_its_start(tmp_path: Path) -> None:
    """The directory says that it begins 16 bytes later than it does: places move by as much."""
    data = bytearray(MAKERS[".zip"]([("a", b"x", "file")]))
    end = data.rindex(b"PK\5\6")
    (start,) = struct.unpack_from("<L", data, end + 16)
    struct.pack_into("<L", data, end + 16, start + 16)
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"damaged: 'a' begins before the file"):
        extract_archive(path, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


def test_a_tar_is_bounded_before_all_of_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "MAX_FILES", 10)
    path = tmp_path / "a.tgz"
    many = tarred([(f"{n}", b"", "file") for n in range(50)])
    path.write_bytes(gzip.compress(many))
    with pytest.raises(DataError, match="11 files"):
        extract_archive(path, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.tgz"]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_tar_whose_headers_have_no_end(kind: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.size, info.type = 8 * 2**30, kind
    with gzip.open(tmp_path / "a.tgz", "wb") as out:
        out.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(2**22))
    with pytest.raises(DataError, match="headers of more than"):
        extract_archive(tmp_path / "a.tgz", tmp_path)


def test_a_hash_that_is_none_is_refused_before_the_download(tmp_path: Path) -> None:
    from fsbench.core.errors import UsageError
    from fsbench.data.cards import Archive
    from fsbench.data.catalog import all_facts

    with pytest.raises(UsageError, match="'abc' is not a sha-256"):
        download.download_dataset(
            all_facts()["isic"], [Archive("http://127.0.0.1:9/a.zip")], tmp_path, ["abc"]
        )
    assert not list(tmp_path.iterdir())
