"""Downloads from a local server: hashes, resume after a broken transfer, safe unpacking."""

import hashlib
import stat
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from support.downloads import Server, zipped

from fsbench.core.errors import DataError, UsageError
from fsbench.data.cards import Archive
from fsbench.data.catalog import all_facts
from fsbench.data.download import download_dataset, extract_archive, fetch_file

FACTS = all_facts()["eurosat"]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


BODY = bytes(range(256)) * 40


def test_a_broken_transfer_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.files["/a.zip"], server.cut = BODY, 1000
    with pytest.raises(DataError, match="run the same command again"):
        fetch_file(f"{server.url}/a.zip", f"sha256:{sha(BODY)}", tmp_path)
    assert (tmp_path / "a.zip.part").read_bytes() == BODY[:1000]
    assert not (tmp_path / "a.zip").exists()
    downloaded = fetch_file(f"{server.url}/a.zip", f"sha256:{sha(BODY)}", tmp_path)
    assert downloaded.read_bytes() == BODY
    assert server.asked == [None, "bytes=1000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_server_without_ranges_starts_over(server: Server, tmp_path: Path) -> None:
    server.files["/a.zip"], server.ranges = BODY, False
    (tmp_path / "a.zip.part").write_bytes(b"old")
    path = fetch_file(f"{server.url}/a.zip", f"sha256:{sha(BODY)}", tmp_path)
    assert path.read_bytes() == BODY


def test_a_whole_part_is_taken(server: Server, tmp_path: Path) -> None:
    server.files["/a.zip"] = BODY
    (tmp_path / "a.zip.part").write_bytes(BODY)
    assert fetch_file(f"{server.url}/a.zip", f"sha256:{sha(BODY)}", tmp_path).read_bytes() == BODY


def test_a_file_that_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(BODY)
    fetch_file(f"{server.url}/a.zip", f"md5:{hashlib.md5(BODY).hexdigest()}", tmp_path)
    assert server.asked == []


def test_a_wrong_hash_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.files["/a.zip"] = BODY
    with pytest.raises(DataError, match="does not have the hash"):
        fetch_file(f"{server.url}/a.zip", f"sha256:{'0' * 64}", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_file_is_named(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot fetch http://127.0.0.1:\d+/gone.zip.*404"):
        fetch_file(f"{server.url}/gone.zip", f"sha256:{'0' * 64}", tmp_path)


def test_two_archives_land_in_one_folder(server: Server, tmp_path: Path) -> None:
    first, second = zipped({"x/a.txt": b"1"}), zipped({"x/b.txt": b"2", "c.txt": b"3"})
    server.files |= {"/1.zip": first, "/2.zip": second}
    archives = [
        Archive(f"{server.url}/1.zip", f"sha256:{sha(first)}"),
        Archive(f"{server.url}/2.zip"),
    ]
    download_dataset(FACTS, archives, tmp_path / "new" / "set", [sha(second).upper()])
    files = sorted(p.relative_to(tmp_path / "new" / "set") for p in tmp_path.rglob("*.*"))
    assert [path.as_posix() for path in files] == ["c.txt", "x/a.txt", "x/b.txt"]


@pytest.mark.parametrize("hashes", [[], ["0" * 64, "1" * 64]])
def test_no_download_without_the_hashes(server: Server, tmp_path: Path, hashes: list[str]) -> None:
    archives = [Archive(f"{server.url}/1.zip", "md5:x"), Archive(f"{server.url}/2.zip")]
    with pytest.raises(UsageError, match=r"1 needed.*/2.zip(.|\n)*--sha256"):
        download_dataset(FACTS, archives, tmp_path / "set", hashes)
    assert server.asked == []


@pytest.mark.parametrize("text", ["abc", "", "g" * 64, "0" * 63])
def test_a_hash_that_is_none_is_refused_before_the_download(tmp_path: Path, text: str) -> None:
    archive = Archive("http://127.0.0.1:9/a.zip")
    with pytest.raises(UsageError, match=f"'{text}' is not a sha-256"):
        download_dataset(FACTS, [archive], tmp_path / "set", [text])
    assert not list(tmp_path.iterdir())


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
    archives = [Archive(f"{server.url}/{name}"), Archive(f"{server.url}/list.txt")]
    download_dataset(FACTS, archives, tmp_path / "set", [sha(packed), sha(plain)])
    files = {p.relative_to(tmp_path / "set").as_posix() for p in tmp_path.rglob("*.*")}
    assert files == {"x/a.txt", "list.txt"}


@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt"])
def test_a_tar_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "bad.tar").write_bytes(tarred({"fine.txt": b"", name: b"x"}))
    with pytest.raises(DataError, match="outside the destination"):
        extract_archive(tmp_path / "bad.tar", tmp_path / "set")
    assert not list((tmp_path / "set").iterdir())


@pytest.mark.parametrize("target", ["/etc/hosts", "../../elsewhere"])
def test_a_tar_with_a_link_out_of_the_folder_is_refused(tmp_path: Path, target: str) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        archive.addfile(entry)
    with pytest.raises(DataError, match="damaged: 'link'"):
        extract_archive(tmp_path / "bad.tar", tmp_path)


@pytest.mark.parametrize("cut", [0, 30, 600])
def test_a_damaged_tar_is_named(tmp_path: Path, cut: int) -> None:
    whole = tarred({"a": b"".join(hashlib.sha256(bytes([n])).digest() for n in range(99))}, "w:gz")
    (tmp_path / "a.tgz").write_bytes(whole[:cut] if cut else b"no tar")
    with pytest.raises(DataError, match=r"a.tgz is damaged"):
        extract_archive(tmp_path / "a.tgz", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def test_a_link_in_a_zip_becomes_a_file(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(entry, "/etc/hosts")
    extract_archive(tmp_path / "a.zip", tmp_path)
    assert not (tmp_path / "link").is_symlink()


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    whole = bytearray(zipped({"a": b"1" * 50}))
    whole[40] ^= 255
    for data in (b"no zip", bytes(whole)):
        (tmp_path / "a.zip").write_bytes(data)
        with pytest.raises(DataError, match=r"a.zip is damaged"):
            extract_archive(tmp_path / "a.zip", tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]
