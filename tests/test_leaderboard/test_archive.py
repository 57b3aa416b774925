"""Archives from strangers: what is good comes through, what is hostile is refused by name."""

import os
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsbench.core.errors import UsageError, ValidationFailed
from leaderboard.intake import archive

GOOD = {"results/a.json": b"{}", "results/deep/b.arrow.zst": b"x" * 5000}


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


def content(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


@pytest.mark.parametrize("name", ["a.zip", "A.ZIP"])
def test_good_archives_unpack_and_vanish(name: str, tmp_path: Path) -> None:
    path = zipped(tmp_path / name, GOOD | {"b.json": b"{}"})
    with archive.open_submission(path) as folder:
        assert content(folder) == GOOD | {"b.json": b"{}"}
    assert not folder.exists()


def test_the_only_folder_of_an_archive_is_the_submission(tmp_path: Path) -> None:
    with archive.open_submission(zipped(tmp_path / "a.zip", GOOD)) as folder:
        assert {f"results/{name}": data for name, data in content(folder).items()} == GOOD


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:evil", "a/" * 20 + "deep"],
)
def test_paths_that_leave_are_refused(name: str, tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {name: b""})
    with pytest.raises(ValidationFailed, match="leaves the folder"), archive.open_submission(path):
        pass
    assert not (tmp_path / "evil").exists()
    assert not Path("/etc/evil").exists()


def test_links_in_zip_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("x")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr(info, "/etc/passwd")
    with pytest.raises(ValidationFailed, match="link"), archive.open_submission(tmp_path / "a.zip"):
        pass


def test_bombs_stop_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_TOTAL", 50_000)
    path = zipped(tmp_path / "a.zip", {"x": b"0" * 10**7})
    assert path.stat().st_size < 50_000
    with pytest.raises(ValidationFailed, match="or 50000 bytes"), archive.open_submission(path):
        pass


def test_a_bomb_that_states_a_small_size_stops_there(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"x": b"0" * 10**7})
    stated, small = (size.to_bytes(4, "little") for size in (10**7, 1000))
    path.write_bytes(path.read_bytes().replace(stated, small))
    (tmp_path / "into").mkdir()
    with pytest.raises(ValidationFailed, match="no readable archive"):
        archive.unpack(path, tmp_path / "into")
    assert (tmp_path / "into" / "x").stat().st_size <= 1000


def test_total_size_and_number_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "a.zip", {f"f{i}": b"0" * 100 for i in range(20)})
    for limit, most in (("MAX_TOTAL", 1500), ("MAX_FILES", 10)):
        monkeypatch.setattr(archive, limit, most)
        with pytest.raises(ValidationFailed, match=f"{most} "), archive.open_submission(path):
            pass


def test_one_name_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr("x", "1")
        with pytest.warns(UserWarning, match="Duplicate"):
            out.writestr("x", "2")
    with (
        pytest.raises(ValidationFailed, match="duplicate member"),
        archive.open_submission(tmp_path / "a.zip"),
    ):
        pass


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 400), flip=st.integers(0, 400))
def test_damaged_archives_never_crash(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flip: int
) -> None:
    path = zipped(tmp_path_factory.mktemp("fuzz") / "a.zip", GOOD)
    raw = bytearray(path.read_bytes())
    raw[flip % len(raw)] ^= 0xFF
    path.write_bytes(raw[: len(raw) - cut] if cut < len(raw) else raw)
    with suppress(ValidationFailed), archive.open_submission(path) as folder:
        assert {*content(folder).values()} <= {*GOOD.values()}


def test_links_in_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    link = tmp_path / "results" / "x.json"
    for target in ("/etc/passwd", "/etc", "nowhere"):
        link.symlink_to(target)
        with (
            pytest.raises(ValidationFailed, match="link or special"),
            archive.open_submission(tmp_path),
        ):
            pass
        link.unlink()


def test_pipes_in_folders_are_refused(tmp_path: Path) -> None:
    """Who reads one waits forever."""
    (tmp_path / "results").mkdir()
    os.mkfifo(tmp_path / "results" / "x.json")
    with (
        pytest.raises(ValidationFailed, match="link or special"),
        archive.open_submission(tmp_path),
    ):
        pass


@pytest.mark.parametrize(("limit", "most"), [("MAX_TOTAL", 199), ("MAX_FILES", 1)])
def test_big_folders_are_refused(
    limit: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    for path in (tmp_path / "x", tmp_path / "deep" / "y"):
        path.write_bytes(b"0" * 100)
    monkeypatch.setattr(archive, limit, most + 1)
    with archive.open_submission(tmp_path):
        pass
    monkeypatch.setattr(archive, limit, most)
    with pytest.raises(ValidationFailed, match="more than"), archive.open_submission(tmp_path):
        pass


@pytest.mark.parametrize("name", ["none", "a.rar", "a.tar.gz"])
def test_what_is_no_archive_is_a_usage_error(name: str, tmp_path: Path) -> None:
    for made in ("a.rar", "a.tar.gz"):
        (tmp_path / made).write_text("x")
    with pytest.raises(UsageError, match=r"does not exist|no zip file"):
        archive.open_submission(tmp_path / name).__enter__()
