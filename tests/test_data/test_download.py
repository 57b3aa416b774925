"""`fsbench data download` from a local server: mirrors, hashes, cuts, unpacking, verification."""

import gzip
import hashlib
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import CommandLine
from support.downloads import Server
from support.images import draw_images, join_names

from fsbench.core.errors import DataError
from fsbench.data.cards import Archive
from fsbench.data.catalog import all_facts
from fsbench.data.download import download_archives, extract_archive, fetch_archive

Publish = Callable[..., None]
BODY = bytes(range(256)) * 40


def sha(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def pack(folder: Path, kind: str = "zip") -> bytes:
    """Pack all files below a folder; kinds of shutil.make_archive."""
    return Path(shutil.make_archive(str(folder), kind, folder)).read_bytes()


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("start", [b"", BODY[:7], BODY])
def test_a_part_of_an_earlier_run_is_continued(
    server: Server, tmp_path: Path, start: bytes, ranges: bool
) -> None:
    server.files["/a.zip"], server.ranges = BODY, ranges
    (tmp_path / "a.zip.part").write_bytes(start)
    archive = Archive(f"{server.url}/a.zip", sha(BODY).upper().replace("SHA", "sha"))
    assert fetch_archive(archive, tmp_path).read_bytes() == BODY
    requests = len(server.asked)
    assert fetch_archive(archive, tmp_path).read_bytes() == BODY
    assert requests == len(server.asked), "a file that is there is not fetched again"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.zip", "zip"), ("a.tar", "tar"), ("a.tgz", "gztar"), ("a.tar.gz", "gztar")],
)
def test_archives_are_unpacked_and_single_files_kept(
    server: Server, tmp_path: Path, name: str, kind: str
) -> None:
    packed = pack(draw_images(tmp_path / "x", "x/a.txt", "c.txt"), kind)
    server.files |= {f"/{name}": packed, "/list.txt": b"1 2\n", "/b.txt.gz": gzip.compress(b"2")}
    files = server.files.items()
    archives = [Archive(f"{server.url}{path}", sha(body), into="raw") for path, body in files]
    download_archives(archives, tmp_path / "y" / "set")
    unpacked = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("y/**/*.*")}
    assert unpacked == {"y/set/list.txt", *(f"y/set/raw/{n}.txt" for n in ("c", "x/a", "b"))}


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize(
    ("name", "link"),
    [
        *(("../out.txt", ""), ("/abs.txt", ""), ("a/../../out.txt", "")),
        *(("link", "/etc/hosts"), ("link", "../../x")),
    ],
)
def test_nothing_in_an_archive_leaves_the_folder(
    tmp_path: Path, kind: str, name: str, link: str
) -> None:
    path, folder = tmp_path / f"bad.{kind}", tmp_path / "x" / "set"
    folder.mkdir(parents=True)
    if kind == "tar":
        with tarfile.open(path, "w") as archive:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
            archive.addfile(entry)
        if name[0] != "/":  # an absolute name is read as a relative one
            message = r"bad.tar is damaged: .*outside the destination|'link'"
            with pytest.raises(DataError, match=message):
                extract_archive(path, folder)
    else:
        member = zipfile.ZipInfo(name)
        member.external_attr = (stat.S_IFLNK if link else stat.S_IFREG | 0o777) << 16
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr(member, link or "x")
        extract_archive(path, folder)
    outside = [p for p in tmp_path.rglob("*") if p.is_symlink() or folder not in (p, *p.parents)]
    assert {p.name for p in outside} == {path.name, "x"}


@pytest.mark.parametrize("name", ["a.zip", "a.tgz", "a.gz"])
def test_a_file_that_is_no_archive_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a web page in its place")
    with pytest.raises(DataError, match=f"{name} is damaged"):
        extract_archive(tmp_path / name, tmp_path)


COUNTS = {"Forest": 6, "River": 6}


@pytest.fixture
def tree(tmp_path: Path) -> bytes:
    """A zip of twelve images of EuroSAT."""
    names = join_names("2750", "Forest River", [f"{n}.jpg" for n in range(6)])
    return pack(draw_images(tmp_path / "drawn", *names))


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


@pytest.fixture
def download(cli: CommandLine, tmp_path: Path) -> Callable[..., str]:
    """Download a data set, by default EuroSAT; return the messages."""
    return lambda name="eurosat", code=0: (
        cli("data", "download", name, "--data", tmp_path, code=code).err
    )


Download = Callable[..., str]


def test_a_cut_connection_is_resumed_and_the_images_verified(
    download: Download, server: Server, publish: Publish, tree: bytes, tmp_path: Path
) -> None:
    server.cut = 500
    publish("eurosat", Archive("e.zip", ""), tree, COUNTS)
    text = download()
    assert server.asked == [None, "bytes=500-"]
    assert "the connection closed after 500 of" in text
    assert f"{tmp_path / 'eurosat'}, verified: the official images" in text
    assert len(list((tmp_path / "eurosat" / "2750").rglob("*.jpg"))) == 12
    assert not list((tmp_path / "eurosat").glob("e.zip*"))
    assert "nothing is fetched" in download()
    assert len(server.asked) == 2


@pytest.mark.parametrize("fault", ["absent", "wrong bytes"])
def test_a_mirror_takes_over(
    download: Download, server: Server, publish: Publish, tree: bytes, fault: str
) -> None:
    archive = Archive("e.zip", sha(tree), mirrors=("gone.zip", "m/e.zip"))
    publish("eurosat", archive, tree, COUNTS)
    server.files |= {"/m/e.zip": tree, "/e.zip": tree[:-1] + b"x"}
    if fault == "absent":
        del server.files["/e.zip"]
    text = download()
    assert ("does not have the hash" if fault != "absent" else "e.zip: HTTP Error 404") in text
    assert "cannot fetch" in text


def test_a_wrong_hash_everywhere_leaves_nothing(
    download: Download, server: Server, publish: Publish, tree: bytes, tmp_path: Path
) -> None:
    publish("eurosat", Archive("e.zip", f"md5:{'0' * 32}", mirrors=("m.zip",)), tree, COUNTS)
    server.files["/m.zip"] = b"other"
    assert download(code=3).count("does not have the hash") >= 2
    assert not list((tmp_path / "eurosat").iterdir())


def test_images_that_are_not_the_official_ones_are_named(
    download: Download, publish: Publish, tree: bytes, tmp_path: Path
) -> None:
    publish("eurosat", Archive("e.zip", ""), tree, {"Forest": 6, "River": 7})
    assert "River 6 of 7" in download(code=3)
    folders = {"Corn___Common_rust": 3, "Cherry___healthy": 2, "Background_without_leaves": 1}
    top = "Plant_leave_diseases_dataset_without_augmentation"
    names = (f"{top}/{name}/{n}.JPG" for name, k in folders.items() for n in range(k))
    official = {"Cherry_(including_sour)___healthy": 1, "Corn_(maize)___Common_rust_": 2}
    body = pack(draw_images(tmp_path / "crops", *names))
    publish("cropdisease", Archive("p.zip", "", official=False), body, official)
    text = download("cropdisease")
    assert "results are marked `subset`" in text
    assert "kaggle datasets download saroz014/plant-disease" in text


def test_an_archive_in_an_archive(download: Download, publish: Publish, tmp_path: Path) -> None:
    counts = {"ant": 30, "crab": 31}
    sizes = {**counts, "BACKGROUND_Google": 1}.items()
    names = [f"{name}/image_{n:04d}.jpg" for name, size in sizes for n in range(1, size + 1)]
    inner = pack(draw_images(tmp_path / "in", *join_names("101_ObjectCategories", names)), "gztar")
    name = all_facts()["caltech101"].archives[0].inner[0]
    outer = draw_images(tmp_path / "out", name, "caltech-101/show_annotation.m")
    (outer / name).write_bytes(inner)
    publish("caltech101", Archive("caltech-101.zip", "", inner=(name,)), pack(outer), counts)
    download("caltech101")
    crabs = tmp_path / "caltech101" / "101_ObjectCategories" / "crab"
    assert len(list(crabs.iterdir())) == 31


def test_a_group_fetches_what_it_may_and_prints_steps_for_the_rest(
    download: Download, publish: Publish, tree: bytes, tmp_path: Path
) -> None:
    publish("eurosat", Archive("e.zip", ""), tree, COUNTS)
    names = ("train/Apple___healthy/a.JPG", "train/Peach___healthy/a.JPG")
    counts = {"Apple___healthy": 1, "Peach___healthy": 1}
    crops = pack(draw_images(tmp_path / "crops", *names))
    publish("cropdisease", Archive("c.zip", ""), crops, counts)
    text = download("cdfsl", 3)
    assert (tmp_path / "eurosat" / "2750").is_dir()
    assert (tmp_path / "cropdisease" / "train").is_dir()
    shown = ["no direct download: chestx, isic", "ROOT/chestx/images/00000001_000.png", "42 GB"]
    shown += ["kaggle datasets download nih-chest-xrays/data", "_Input.zip", "GroundTruth.zip"]
    assert [step for step in shown if step not in text] == []
