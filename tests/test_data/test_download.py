"""Downloads from a local server: hashes, resume after a broken transfer, safe unpacking."""

import hashlib
import stat
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from support.downloads import Server, zipped

from fsbench.core.errors import DataError
from fsbench.data.cards import Archive
from fsbench.data.download import download_archives, extract_archive, fetch_archive


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


BODY = bytes(range(256)) * 40


def fetch(server: Server, folder: Path, name: str = "a.zip", known_hash: str = "") -> Path:
    archive = Archive(f"{server.url}/{name}", known_hash or f"sha256:{sha(BODY)}")
    return fetch_archive(archive, folder)


def test_a_broken_transfer_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.files["/a.zip"], server.cut = BODY, 1000
    assert fetch(server, tmp_path).read_bytes() == BODY
    assert server.asked == [None, "bytes=1000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("start", [b"", BODY[:7], BODY])
def test_a_part_of_an_earlier_run_is_continued(
    server: Server, tmp_path: Path, start: bytes, ranges: bool
) -> None:
    server.files["/a.zip"], server.ranges = BODY, ranges
    (tmp_path / "a.zip.part").write_bytes(start)
    assert fetch(server, tmp_path).read_bytes() == BODY


def test_a_file_that_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(BODY)
    fetch(server, tmp_path, known_hash=f"md5:{hashlib.md5(BODY).hexdigest()}")
    assert server.asked == []


def test_a_missing_file_is_named(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot fetch http://127.0.0.1:\d+/gone.zip.*404"):
        fetch(server, tmp_path, "gone.zip")


def test_two_archives_land_in_one_folder(server: Server, tmp_path: Path) -> None:
    first, second = zipped({"x/a.txt": b"1"}), zipped({"x/b.txt": b"2", "c.txt": b"3"})
    server.files |= {"/1.zip": first, "/2.zip": second}
    archives = [
        Archive(f"{server.url}/1.zip", f"sha256:{sha(first)}"),
        Archive(f"{server.url}/2.zip", f"sha256:{sha(second).upper()}"),
    ]
    download_archives(archives, tmp_path / "new" / "set")
    files = sorted(p.relative_to(tmp_path / "new" / "set") for p in tmp_path.rglob("*.*"))
    assert [path.as_posix() for path in files] == ["c.txt", "x/a.txt", "x/b.txt"]


@pytest.mark.parametrize("name", ["../out.txt", "/abs.txt", "a/../../out.txt"])
def test_no_path_in_a_zip_leaves_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "x" / "set").mkdir(parents=True)
    (tmp_path / "a.zip").write_bytes(zipped({"fine.txt": b"", name: b"x"}))
    extract_archive(tmp_path / "a.zip", tmp_path / "x" / "set")
    assert {path.name for path in tmp_path.iterdir()} == {"a.zip", "x"}
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["set"]


def tarred(files: dict[str, bytes], mode: str = "w") -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "mode"), [("a.tar", "w"), ("a.tgz", "w:gz"), ("a.tar.gz", "w:gz")]
)
def test_tars_are_unpacked_and_single_files_kept(
    server: Server, tmp_path: Path, name: str, mode: str
) -> None:
    packed, plain = tarred({"./x/a.txt": b"1"}, mode), b"1 2\n"
    server.files |= {f"/{name}": packed, "/list.txt": plain}
    archives = [
        Archive(f"{server.url}/{name}", f"sha256:{sha(packed)}"),
        Archive(f"{server.url}/list.txt", f"sha256:{sha(plain)}"),
    ]
    download_archives(archives, tmp_path / "set")
    files = {p.relative_to(tmp_path / "set").as_posix() for p in tmp_path.rglob("*.*")}
    assert files == {"x/a.txt", "list.txt"}


@pytest.mark.parametrize(
    ("name", "link"),
    [("../out.txt", ""), ("a/../../out.txt", ""), ("link", "/etc/hosts"), ("link", "../../x")],
)
def test_a_tar_that_leaves_the_folder_is_refused(tmp_path: Path, name: str, link: str) -> None:
    (tmp_path / "set").mkdir()
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
        archive.addfile(entry)
    with pytest.raises(DataError, match=r"bad.tar is damaged: .*outside the destination|'link'"):
        extract_archive(tmp_path / "bad.tar", tmp_path / "set")
    assert {path.name for path in tmp_path.rglob("*")} == {"bad.tar", "set"}


def test_a_link_in_a_zip_becomes_a_file(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(entry, "/etc/hosts")
    extract_archive(tmp_path / "a.zip", tmp_path)
    assert not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("name", ["a.zip", "a.tgz"])
def test_a_file_that_is_no_archive_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a web page in its place")
    with pytest.raises(DataError, match=f"{name} is damaged"):
        extract_archive(tmp_path / name, tmp_path)
