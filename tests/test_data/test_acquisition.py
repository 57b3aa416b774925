"""`fsbench data download` from a local server: mirrors, hashes, cuts, layout and verification."""

import hashlib
import tarfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from support.cli import call
from support.downloads import Server, zipped

from fsbench.data.cards import Archive
from fsbench.data.catalog import all_facts

Publish = Callable[..., Archive]


def jpeg(level: int) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (8, 8), (level % 256, level // 256, 7)).save(buffer, "JPEG")
    return buffer.getvalue()


TREE = {f"2750/{name}/{name}_{n}.jpg": jpeg(n) for name in ("Forest", "River") for n in range(6)}


def download(
    capsys: pytest.CaptureFixture[str], root: Path, name: str = "eurosat"
) -> tuple[int, str]:
    code = call("data", "download", name, "--data", str(root))
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return code, text


@pytest.fixture
def publish(server: Server, change_card: Callable[..., None]) -> Publish:
    """Serve an archive as that of a data set, which has the images of `counts` by class."""

    def publish(name: str, archive: Archive, body: bytes, counts: dict[str, int]) -> None:
        server.files[f"/{archive.url}"] = body
        placed = replace(
            archive,
            url=f"{server.url}/{archive.url}",
            mirrors=tuple(f"{server.url}/{name}" for name in archive.mirrors),
            known_hash=archive.known_hash or f"md5:{hashlib.md5(body).hexdigest()}",
        )
        official = tuple(counts.values())
        change_card(name, classes=tuple(counts), images_per_class=official, archives=(placed,))

    return publish


def test_a_cut_connection_is_resumed_and_the_images_verified(
    capsys: pytest.CaptureFixture[str], server: Server, publish: Publish, tmp_path: Path
) -> None:
    server.cut = 500
    publish("eurosat", Archive("e.zip", ""), zipped(TREE), {"Forest": 6, "River": 6})
    code, text = download(capsys, tmp_path)
    assert code == 0, text
    assert server.asked == [None, "bytes=500-"]
    assert "the connection closed after 500 of" in text
    assert f"{tmp_path / 'eurosat'}, verified: the official images" in text
    assert len(list((tmp_path / "eurosat" / "2750").rglob("*.jpg"))) == 12
    assert not list((tmp_path / "eurosat").glob("e.zip*"))
    code, text = download(capsys, tmp_path)
    assert (code, len(server.asked)) == (0, 2)
    assert "nothing is fetched" in text


@pytest.mark.parametrize("fault", ["absent", "wrong bytes"])
def test_a_mirror_takes_over(
    capsys: pytest.CaptureFixture[str],
    server: Server,
    publish: Publish,
    tmp_path: Path,
    fault: str,
) -> None:
    body = zipped(TREE)
    known_hash = f"sha256:{hashlib.sha256(body).hexdigest()}"
    archive = Archive("e.zip", known_hash, "a test", mirrors=("gone.zip", "m/e.zip"))
    publish("eurosat", archive, body, {"Forest": 6, "River": 6})
    server.files["/m/e.zip"] = body
    if fault == "absent":
        del server.files["/e.zip"]
    else:
        server.files["/e.zip"] = body[:-1] + b"x"
    code, text = download(capsys, tmp_path)
    assert code == 0, text
    assert "its hash is stated by a test" in text
    assert ("does not have the hash" if fault != "absent" else "e.zip: HTTP Error 404") in text
    assert "cannot fetch" in text


def test_a_wrong_hash_everywhere_leaves_nothing(
    capsys: pytest.CaptureFixture[str], server: Server, publish: Publish, tmp_path: Path
) -> None:
    archive = Archive("e.zip", f"md5:{'0' * 32}", mirrors=("m.zip",))
    publish("eurosat", archive, zipped(TREE), {"Forest": 6, "River": 6})
    server.files["/m.zip"] = b"other"
    code, text = download(capsys, tmp_path)
    assert code == 3
    assert text.count("does not have the hash") >= 2
    assert not list((tmp_path / "eurosat").iterdir())


def test_images_that_are_not_the_official_ones_are_named(
    capsys: pytest.CaptureFixture[str], publish: Publish, tmp_path: Path
) -> None:
    publish("eurosat", Archive("e.zip", ""), zipped(TREE), {"Forest": 6, "River": 7})
    code, text = download(capsys, tmp_path)
    assert code == 3
    assert "River 6 of 7" in text


def test_archives_in_an_archive_and_their_layout(
    capsys: pytest.CaptureFixture[str], publish: Publish, tmp_path: Path
) -> None:
    """Caltech-101: a tar in a zip, in a folder that the loader does not read."""
    inner = BytesIO()
    counts = {"ant": 30, "crab": 31}
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        for name, count in {**counts, "BACKGROUND_Google": 1}.items():
            for n in range(1, count + 1):
                entry = tarfile.TarInfo(f"101_ObjectCategories/{name}/image_{n:04d}.jpg")
                entry.size = len(jpeg(n))
                archive.addfile(entry, BytesIO(jpeg(n)))
    name = all_facts()["caltech101"].archives[0].inner[0]
    body = zipped({name: inner.getvalue(), "caltech-101/show_annotation.m": b""})
    publish("caltech101", Archive("caltech-101.zip", "", inner=(name,)), body, counts)
    code, text = download(capsys, tmp_path, "caltech101")
    assert code == 0, text
    tree = tmp_path / "caltech101" / "101_ObjectCategories"
    assert len(list((tree / "crab").iterdir())) == 31


def test_a_whole_plantvillage_is_marked_subset(
    capsys: pytest.CaptureFixture[str], publish: Publish, tmp_path: Path
) -> None:
    folders = {"Corn___Common_rust": 3, "Cherry___healthy": 2, "Background_without_leaves": 1}
    top = "Plant_leave_diseases_dataset_without_augmentation"
    images = {f"{top}/{name}/{n}.JPG": jpeg(n) for name, k in folders.items() for n in range(k)}
    official = {"Cherry_(including_sour)___healthy": 1, "Corn_(maize)___Common_rust_": 2}
    publish("cropdisease", Archive("p.zip", "", official=False), zipped(images), official)
    code, text = download(capsys, tmp_path, "cropdisease")
    assert code == 0, text
    assert "results are marked `subset`" in text
    assert "kaggle datasets download saroz014/plant-disease" in text


def test_a_group_fetches_what_it_may_and_prints_steps_for_the_rest(
    capsys: pytest.CaptureFixture[str], publish: Publish, tmp_path: Path
) -> None:
    publish("eurosat", Archive("e.zip", ""), zipped(TREE), {"Forest": 6, "River": 6})
    crops = zipped({"train/Apple___healthy/a.JPG": jpeg(1), "train/Peach___healthy/a.JPG": jpeg(2)})
    counts = {"Apple___healthy": 1, "Peach___healthy": 1}
    publish("cropdisease", Archive("c.zip", ""), crops, counts)
    code, text = download(capsys, tmp_path, "cdfsl")
    assert code == 3
    assert (tmp_path / "eurosat" / "2750").is_dir()
    assert (tmp_path / "cropdisease" / "train").is_dir()
    assert "no direct download: chestx, isic" in text
    assert "ROOT/chestx/images/00000001_000.png" in text
    assert "42 GB" in text
    assert "ROOT/isic/ISIC2018_Task3_Training_Input/" in text
    code, text = download(capsys, tmp_path, "cdfsl-small")
    assert code == 3
    assert "no direct download: isic" in text
