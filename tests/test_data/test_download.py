"""`fsbench data download` from a local server: mirrors, hashes, cuts, unpacking, verification."""

import hashlib
import stat
import tarfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from support.cli import call
from support.downloads import Server, zipped

from fsbench.core.errors import DataError
from fsbench.data.cards import Archive
from fsbench.data.catalog import all_facts
from fsbench.data.download import download_archives, extract_archive, fetch_archive

Download = Callable[..., tuple[int, str]]
Publish = Callable[..., None]
BODY = bytes(range(256)) * 40


def sha(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def tarred(files: dict[str, bytes], mode: str = "w") -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("start", [b"", BODY[:7], BODY])
def test_a_part_of_an_earlier_run_is_continued(
    server: Server, tmp_path: Path, start: bytes, ranges: bool
) -> None:
    server.files["/a.zip"], server.ranges = BODY, ranges
    (tmp_path / "a.zip.part").write_bytes(start)
    archive = Archive(f"{server.url}/a.zip", sha(BODY).upper().replace("SHA", "sha"))
    for _ in range(2):
        assert fetch_archive(archive, tmp_path).read_bytes() == BODY
        requests = len(server.asked)
    assert requests == len(server.asked), "a file that is there is not fetched again"


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("a.zip", zipped({"x/a.txt": b"1", "c.txt": b"3"})),
        ("a.tar", tarred({"./x/a.txt": b"1", "c.txt": b"3"})),
        ("a.tgz", tarred({"x/a.txt": b"1", "c.txt": b"3"}, "w:gz")),
        ("a.tar.gz", tarred({"x/a.txt": b"1", "c.txt": b"3"}, "w:gz")),
    ],
)
def test_archives_are_unpacked_and_single_files_kept(
    server: Server, tmp_path: Path, name: str, packed: bytes
) -> None:
    server.files |= {f"/{name}": packed, "/list.txt": b"1 2\n"}
    archives = [Archive(f"{server.url}{path}", sha(body)) for path, body in server.files.items()]
    download_archives(archives, tmp_path / "new" / "set")
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert files == {"new/set/c.txt", "new/set/x/a.txt", "new/set/list.txt"}


@pytest.mark.parametrize("name", ["../out.txt", "/abs.txt", "a/../../out.txt"])
def test_no_path_in_a_zip_leaves_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "x" / "set").mkdir(parents=True)
    (tmp_path / "a.zip").write_bytes(zipped({"fine.txt": b"", name: b"x"}))
    extract_archive(tmp_path / "a.zip", tmp_path / "x" / "set")
    assert {path.name for path in tmp_path.iterdir()} == {"a.zip", "x"}
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["set"]


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


@pytest.mark.parametrize("name", ["a.zip", "a.tgz", "a.gz"])
def test_a_file_that_is_no_archive_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a web page in its place")
    with pytest.raises(DataError, match=f"{name} is damaged"):
        extract_archive(tmp_path / name, tmp_path)


def jpeg(level: int) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (8, 8), (level % 256, level // 256, 7)).save(buffer, "JPEG")
    return buffer.getvalue()


TREE = {f"2750/{name}/{name}_{n}.jpg": jpeg(n) for name in ("Forest", "River") for n in range(6)}
COUNTS = {"Forest": 6, "River": 6}


@pytest.fixture
def download(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Download:
    """Run the command; return its exit code and messages."""

    def download(name: str = "eurosat") -> tuple[int, str]:
        code = call("data", "download", name, "--data", str(tmp_path))
        text = capsys.readouterr().err
        assert "Traceback" not in text
        return code, text

    return download


@pytest.fixture
def publish(server: Server, change_card: Callable[..., None]) -> Publish:
    """Serve an archive as that of a data set, which has the images of `counts` by class."""

    def publish(name: str, archive: Archive, body: bytes, counts: dict[str, int]) -> None:
        server.files[f"/{archive.url}"] = body
        placed = archive._replace(
            url=f"{server.url}/{archive.url}",
            mirrors=tuple(f"{server.url}/{name}" for name in archive.mirrors),
            known_hash=archive.known_hash or f"md5:{hashlib.md5(body).hexdigest()}",
        )
        official = tuple(counts.values())
        change_card(name, classes=tuple(counts), images_per_class=official, archives=(placed,))

    return publish


def test_a_cut_connection_is_resumed_and_the_images_verified(
    download: Download, server: Server, publish: Publish, tmp_path: Path
) -> None:
    server.cut = 500
    publish("eurosat", Archive("e.zip", ""), zipped(TREE), COUNTS)
    code, text = download()
    assert code == 0, text
    assert server.asked == [None, "bytes=500-"]
    assert "the connection closed after 500 of" in text
    assert f"{tmp_path / 'eurosat'}, verified: the official images" in text
    assert len(list((tmp_path / "eurosat" / "2750").rglob("*.jpg"))) == 12
    assert not list((tmp_path / "eurosat").glob("e.zip*"))
    code, text = download()
    assert (code, len(server.asked)) == (0, 2)
    assert "nothing is fetched" in text


@pytest.mark.parametrize("fault", ["absent", "wrong bytes"])
def test_a_mirror_takes_over(
    download: Download, server: Server, publish: Publish, fault: str
) -> None:
    body = zipped(TREE)
    archive = Archive("e.zip", sha(body), "a test", mirrors=("gone.zip", "m/e.zip"))
    publish("eurosat", archive, body, COUNTS)
    server.files["/m/e.zip"] = body
    server.files["/e.zip"] = body[:-1] + b"x"
    if fault == "absent":
        del server.files["/e.zip"]
    code, text = download()
    assert code == 0, text
    assert "its hash is stated by a test" in text
    assert ("does not have the hash" if fault != "absent" else "e.zip: HTTP Error 404") in text
    assert "cannot fetch" in text


def test_a_wrong_hash_everywhere_leaves_nothing(
    download: Download, server: Server, publish: Publish, tmp_path: Path
) -> None:
    archive = Archive("e.zip", f"md5:{'0' * 32}", mirrors=("m.zip",))
    publish("eurosat", archive, zipped(TREE), COUNTS)
    server.files["/m.zip"] = b"other"
    code, text = download()
    assert (code, text.count("does not have the hash") >= 2) == (3, True)
    assert not list((tmp_path / "eurosat").iterdir())


def test_images_that_are_not_the_official_ones_are_named(
    download: Download, publish: Publish
) -> None:
    publish("eurosat", Archive("e.zip", ""), zipped(TREE), {"Forest": 6, "River": 7})
    code, text = download()
    assert (code, "River 6 of 7" in text) == (3, True)
    folders = {"Corn___Common_rust": 3, "Cherry___healthy": 2, "Background_without_leaves": 1}
    top = "Plant_leave_diseases_dataset_without_augmentation"
    images = {f"{top}/{name}/{n}.JPG": jpeg(n) for name, k in folders.items() for n in range(k)}
    official = {"Cherry_(including_sour)___healthy": 1, "Corn_(maize)___Common_rust_": 2}
    publish("cropdisease", Archive("p.zip", "", official=False), zipped(images), official)
    code, text = download("cropdisease")
    assert (code, "results are marked `subset`" in text) == (0, True)
    assert "kaggle datasets download saroz014/plant-disease" in text


def test_an_archive_in_an_archive(download: Download, publish: Publish, tmp_path: Path) -> None:
    counts = {"ant": 30, "crab": 31}
    inner = tarred(
        {
            f"101_ObjectCategories/{name}/image_{n:04d}.jpg": jpeg(n)
            for name, count in {**counts, "BACKGROUND_Google": 1}.items()
            for n in range(1, count + 1)
        },
        "w:gz",
    )
    name = all_facts()["caltech101"].archives[0].inner[0]
    body = zipped({name: inner, "caltech-101/show_annotation.m": b""})
    publish("caltech101", Archive("caltech-101.zip", "", inner=(name,)), body, counts)
    code, text = download("caltech101")
    assert code == 0, text
    tree = tmp_path / "caltech101" / "101_ObjectCategories"
    assert len(list((tree / "crab").iterdir())) == 31


def test_a_group_fetches_what_it_may_and_prints_steps_for_the_rest(
    download: Download, publish: Publish, tmp_path: Path
) -> None:
    publish("eurosat", Archive("e.zip", ""), zipped(TREE), COUNTS)
    crops = zipped({"train/Apple___healthy/a.JPG": jpeg(1), "train/Peach___healthy/a.JPG": jpeg(2)})
    counts = {"Apple___healthy": 1, "Peach___healthy": 1}
    publish("cropdisease", Archive("c.zip", ""), crops, counts)
    code, text = download("cdfsl")
    assert code == 3
    assert (tmp_path / "eurosat" / "2750").is_dir()
    assert (tmp_path / "cropdisease" / "train").is_dir()
    shown = ["no direct download: chestx, isic", "ROOT/chestx/images/00000001_000.png", "42 GB"]
    shown += ["kaggle datasets download nih-chest-xrays/data", "_Input.zip", "GroundTruth.zip"]
    assert [step for step in shown if step not in text] == []
