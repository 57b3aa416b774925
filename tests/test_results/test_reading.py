"""Nothing is believed that can be recomputed: every kind of tampering is named with its file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import fakes
from support.forged import edit, flipped
from support.reading import episode_records, probe_records, read

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.records import EpisodeRecords
from fsbench.results.assembly import build_result
from fsbench.results.entry import ENTRY_FILE, read_entry, write_entry
from fsbench.results.verification import find_entries, read_loaded, read_one_result, read_verified

Fields = dict[str, Any]
Change = Callable[[Fields], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with one result."""
    fakes.write(tmp_path)
    (folder,) = find_entries(tmp_path)
    return folder


def line(**values: object) -> Change:
    """Changes fields of the only result."""
    return lambda d: d["results"][0].update(values)


def score(**values: object) -> Change:
    return lambda d: d["results"][0]["score"].update(values)


def data(**values: object) -> Change:
    return lambda d: d["datasets"][0].update(values)


EDITS: list[tuple[str, Change]] = [
    (r"the file says 99\.00 ± .*, its outcomes give 5", score(mean=0.99)),
    (r"the file says .* ± 0\.00 % over 40, its outcomes give", score(ci95=0.0)),
    (r"over 41, its outcomes give .* over 40", score(n=41)),
    ("the file says 3 of collapsed, its outcomes give 0", line(collapsed=3)),
    ("the file says 1 of non finite, its outcomes give 0", line(non_finite=1)),
    ("other values of details", line(details={"lr": 1.0})),
    ("other values of dense|of dense, its outcomes give None", line(dense={"mean": 0.5, "n": 40})),
    ("is named .eurosat:5w1s/linear@ibm 32px", line(column="eurosat:5w1s/linear@ibm 32px")),
    ("other content than", lambda d: d.update(outcomes="0" * 64)),
    ("the flags are none, its data need custom", line(flags=[])),
    ("the flags are custom, limited", line(flags=["custom", "limited"])),
    ("images are the pool labeled_80", data(pool="labeled_80")),
    ("it states groups of images on the track classic", data(groups="a" * 64)),
    ("class ids do not increase", data(class_ids=[0, 1, 2, 3, 4, 4])),
    ("a class has no image", data(class_counts=[30] * 5 + [0])),
    ("not as many class ids as names and counts", data(class_counts=[30] * 5)),
    ("the counts of test images sum to 7", data(test_counts=[7, 0, 0, 0, 0, 0])),
    ("unknown key 'extra'", lambda d: d.update(extra=1)),
    ("unknown key 'control', use 'controls'", lambda d: d.update(control=[0])),
    (r"unknown key 'results\.0\.extra'", line(extra=1)),
    ("schema_version", lambda d: d.update(schema_version=9)),
    ("results", lambda d: d.update(results=[])),
    ("models: Field required", lambda d: d.pop("models")),
    ("outcomes", lambda d: d.update(outcomes="../../../etc/passwd")),
    ("score.mean", score(mean=57.75)),
    ("finite", score(mean=float("nan"))),
    ("finite", score(ci95=float("inf"))),
    ("finite", line(details={"lr": float("nan")})),
    ("results.0.seconds", line(seconds=float("inf"))),
    ("results.0.model", line(model=-1)),
    ("names model 1 of 1", line(model=1)),
    ("names dataset 1000000000 of 1", line(dataset=10**9)),
    ("names spec 1 of 1", line(spec=1)),
    ("names environment 1 of 1", line(environment=1)),
    ("controls are no models", lambda d: d.update(controls=[1])),
    ("greater than or equal to 0", lambda d: d.update(controls=[-1])),
    ("specs.0", lambda d: d["specs"][0].update(kind="x")),
]


@pytest.mark.parametrize(("message", "change"), EDITS)
def test_an_edited_result_is_refused(message: str, change: Change, folder: Path) -> None:
    if "other content" in message:  # the digest of the outcomes is the name of their file
        (path,) = folder.glob("outcomes-*")
        path.rename(folder / f"outcomes-{'0' * 12}.arrow.zst")
    edit(folder, change)
    with pytest.raises(ValidationFailed, match=message) as caught:
        read(folder)
    assert str(folder) in str(caught.value)
    assert "fix:" in str(caught.value)


def test_all_that_is_wrong_is_named_together(folder: Path, tmp_path: Path) -> None:
    fakes.write(tmp_path, shots=5)

    def change(fields: Fields) -> None:
        for result in fields["results"]:
            result["collapsed"] = 7
            result["flags"] = []

    edit(folder, change)
    with pytest.raises(ValidationFailed) as caught:
        read(folder)
    for shots in (1, 5):
        where = f"{folder}:folder-blobs:5w{shots}s/linear@ibm 32px n_query=5"
        assert str(caught.value).count(f"{where}: ") == 2


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b"null", b"\xff\xfe", b"[" * 100_000, b'{"models": NaN}']
)
def test_what_is_no_entry_is_named(text: bytes, folder: Path) -> None:
    (folder / ENTRY_FILE).write_bytes(text)
    with pytest.raises(ValidationFailed, match=f"{ENTRY_FILE} is no valid entry"):
        read(folder)


def number(*index: int) -> Callable[[EpisodeRecords], EpisodeRecords]:
    return lambda records: replace(records, index=np.array(index))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flipped(1, episode=7), "its outcomes give"),
        (number(*[0] * 40), "unsorted, or one is there twice"),
        (number(*range(1, 40), 0), "unsorted, or one is there twice"),
        (number(-1, *range(39)), "unsorted, or one is there twice"),
    ],
)
def test_other_outcomes_under_a_digest_that_fits_are_found(
    change: Callable[[Any], EpisodeRecords], message: str, folder: Path
) -> None:
    """The digest is made again; what the file states is then not what its outcomes give."""
    (cell,) = read_entry(folder).loaded
    write_entry(folder, [(cell.result, change(cell.records))])
    with pytest.raises(ValidationFailed, match=message):
        read(folder)


def test_a_probe_curve_must_fit_its_outcomes(tmp_path: Path) -> None:
    result = fakes.write_probe(tmp_path)
    (folder,) = find_entries(tmp_path)
    records = probe_records(folder)
    for value, message in ((0.123, "curve of accuracies differs"), (np.nan, "NaN or infinity")):
        curve = records.curve.copy()
        curve[1, -1] = value
        write_entry(folder, [(result, replace(records, curve=curve))])
        with pytest.raises(ValidationFailed, match=message):
            read(folder)


def test_a_result_is_named_by_folder_and_task(tmp_path: Path, folder: Path) -> None:
    fakes.write_probe(tmp_path)
    fakes.write(tmp_path, shots=5)
    for text, column in (
        ("folder-blobs:5w1s", "folder-blobs:5w1s/linear@ibm 32px n_query=5"),
        ("folder-blobs:5w5s/linear@ibm", "folder-blobs:5w5s/linear@ibm 32px n_query=5"),
        ("folder-blobs:probe 32px", "folder-blobs:probe 32px"),
    ):
        for home in (folder, tmp_path):
            cell = read_one_result(f"{home}:{text}")
            assert str(cell.result.column) == column
            assert read_one_result(str(cell)).result == cell.result
    assert episode_records(f"{folder}:folder-blobs:5w1s").index.size == 40
    assert probe_records(f"{folder}:folder-blobs:probe").last.shape == (3, 37)
    with pytest.raises(UsageError, match=r"names 3 results(.|\n)*probe(.|\n)*5w5s"):
        read_one_result(folder)
    with pytest.raises(UsageError, match="names 0 results"):
        read_one_result(f"{folder}:eurosat:5w1s")
    with pytest.raises(UsageError, match="does not exist"):
        read_one_result(tmp_path / "none:folder-blobs:5w1s")


def test_a_column_with_results_of_two_specs_names_none_of_them(tmp_path: Path) -> None:
    """Another seed draws other episodes of the same column."""
    plain, data = fakes.episodic(), fakes.dataset()
    seeded = plain.model_copy(update={"episode": plain.episode.model_copy(update={"seed": 7})})
    cells = []
    for spec in (plain, seeded):
        records = fakes.episodes(spec, data, range(40), 0.6)
        facts = (fakes.facts(), data, spec, records)
        cells.append((build_result(*facts, False, fakes.provenance()), records))
    write_entry(tmp_path, cells)
    with pytest.raises(UsageError, match="names 2 results"):
        read_one_result(f"{tmp_path}:folder-blobs:5w1s")


def test_entries_are_read_on_their_own_and_hidden_folders_are_none(tmp_path: Path) -> None:
    for name in "abc":
        fakes.write(tmp_path, name=name)
    (tmp_path / ".hidden").mkdir()
    first, _, last = find_entries(tmp_path)
    (last / ENTRY_FILE).rename(tmp_path / ".hidden" / ENTRY_FILE)
    (first / ENTRY_FILE).write_text("{")
    (good,) = [cell.folder for cell in read_verified(find_entries(tmp_path)[1]).loaded]
    assert good.parent.name == "b"
    with pytest.raises(ValidationFailed, match=str(first)):
        list(read_loaded(tmp_path))
