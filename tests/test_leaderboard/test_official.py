"""Frozen boards: a copy that was changed is refused; what may stand on which track."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import fakes
from support.cases import read_cases
from support.cli import CommandLine
from support.fakes import DECLARATION, add_entry
from support.reading import read

from fsbench.api.submit import submit
from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.records import ProbeRecords
from fsbench.core.schema import DatasetRecord, Declaration, Result
from fsbench.core.seeding import uniforms
from fsbench.core.specs import EpisodicSpec, ImageSpec, ProbeSpec
from fsbench.core.tasks import Track
from fsbench.data.catalog import all_facts
from leaderboard import official
from leaderboard.record import BoardFile, Column
from leaderboard.repository import ABOUT, init_board
from leaderboard.store import Board
from leaderboard.tables import rank_board

SETS = ("flowers102", "cub200", "aircraft", "mit67", "dogs")


def write_probe(
    root: Path, accuracy: float, data: DatasetRecord, name: str, size: int = 224, **facts: Any
) -> Result:
    """A probe of 100 test images; what is best is best by far. facts: of the backbone."""
    spec = ProbeSpec(image=ImageSpec(input_size=size), held_out=0.1)
    lrs, chances = np.array(spec.lrs), accuracy * np.array([1.0, 0.5, 0.2])
    right = uniforms((3, 100), name, data.name, str(size)) < chances[:, None]
    curve = np.repeat(right.mean(axis=1)[:, None], spec.epochs, axis=1)
    records = ProbeRecords(lrs, curve, right, right, right.mean(axis=1))
    return fakes.store(root, spec, records, backbone=fakes.facts(name, **facts), data=data)


def named(name: str, **changes: object) -> Declaration:
    return DECLARATION.model_copy(update={"name": name, **changes})


@pytest.fixture
def board(tmp_path: Path) -> Path:
    init_board(tmp_path / "board", "transfer-2")
    return tmp_path / "board"


Content = dict[str, Any]
CHANGES: tuple[tuple[str, Callable[[Content], object]], ...] = (
    ("about", lambda c: c.update(about="mine")),
    ("date, official", lambda c: c.update(official=False, date="2020-01-01")),
    ("columns", lambda c: c["columns"].pop(0)),
    ("columns", lambda c: c["columns"].reverse()),
    ("columns", lambda c: c["columns"][1].update(spec_digest="a" * 64)),
    ("columns", lambda c: c["columns"][2].update(fingerprint="a" * 64)),
    ("columns", lambda c: c["columns"].append({**c["columns"][0], "name": "x:probe 9px"})),
)
"""Fields that are named, and a change of board.json."""


def edit(board: Path, change: Callable[[Content], object]) -> None:
    content = json.loads((board / "board.json").read_text())
    change(content)
    (board / "board.json").write_text(json.dumps(content))


@pytest.mark.parametrize("again", [False, True], ids=["digest kept", "digest made again"])
@pytest.mark.parametrize(("fields", "change"), CHANGES)
def test_a_frozen_board_that_was_changed_is_refused(
    board: Path, fields: str, change: Callable[[Content], object], again: bool
) -> None:
    """Also where the digest fits, as somebody would make it who knows the format."""
    edit(board, change)
    if again:
        edit(board, lambda c: c.update(frozen=BoardFile.model_validate(c).content_digest))
    message = f"the frozen board transfer-2 was changed: {fields}\n"
    with pytest.raises(ValidationFailed, match=message) as caught:
        Board.open(board)
    assert "restore the file" in caught.value.fix


@pytest.mark.parametrize(("changes", "message"), read_cases("boards")["versions"])
def test_a_version_is_whole_and_known(board: Path, changes: Content, message: str) -> None:
    edit(board, lambda content: content.update(changes))
    with pytest.raises(ValidationFailed, match=message):
        Board.open(board)


@pytest.mark.parametrize(
    "name", ["eurosat", "eurosat:probe", "eurosat:1s/linear@ibm 64px", "x 9px"]
)
def test_a_column_has_a_track(name: str) -> None:
    with pytest.raises(ValueError, match="names no column"):
        Column(name=name, spec_digest="a" * 64, fingerprint=None)


def test_an_older_version_renders_under_its_own_file(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit_probes(board, "old")
    before = rank_board(board)
    old = official.find_official_board("transfer-2")
    newer = old.model_copy(update={"version": 3, "columns": old.columns[:1]}).freeze()
    monkeypatch.setattr(official, "load_official_boards", lambda: (old, newer))
    assert official.find_official_board("transfer") == newer
    assert official.find_official_board("transfer-2") == old
    assert rank_board(board) == before
    assert before[0].name == "transfer-2"


def submit_probes(
    board: Path, name: str, accuracy: float = 0.8, *others: DatasetRecord, size: int = 64
) -> None:
    """Submit all official columns of 224 px, and probes of other data sets or sizes."""
    results = board.parent / name
    for data in map(fakes.official, SETS):
        write_probe(results, accuracy, data, name)
    for data in others:
        write_probe(results, accuracy, data, name, size)
    submit(results, board, named(name))


def test_official_and_subset_are_never_one_table(board: Path, tmp_path: Path) -> None:
    submit_probes(board, "whole")
    submit_probes(board, "worse", 0.6)
    for data in (fakes.official("dogs", subset=True), fakes.official("cub200")):
        write_probe(tmp_path / "part", 0.99, data, "part")
    submit(tmp_path / "part", board, named("part"))
    submit_probes(board, "wide", 0.9, fakes.official("dogs"))
    tables = {table.track.label: table for table in rank_board(board) if table.track}
    assert list(tables) == ["probe 224px official", "probe 64px official", "probe 224px subset"]
    large, small, subset = tables.values()
    assert large.ranking.columns == tuple(f"{name}:probe 224px" for name in sorted(SETS))
    tiers = [[entry.name for entry in tier] for tier in large.ranking.tiers]
    assert tiers == [["wide"], ["whole"], ["worse"]]
    (unranked,) = large.ranking.unranked
    assert (unranked.name, set(unranked.scores)) == ("part", {"cub200:probe 224px"})
    assert len(unranked.missing) == 4
    assert [entry.name for entry in subset.ranking.entries] == ["part"]
    assert subset.ranking.columns == ("dogs:probe 224px",)
    assert (subset.rows["part"].flags, large.rows["part"].flags) == (("subset",), ())
    assert [entry.name for entry in small.ranking.unranked] == ["wide"]
    assert len(small.ranking.columns) == 5
    measured = {e.name for e in large.published if not all(c.in_domain for c in e.cells)}
    assert measured == {f"seal-paper-{n}" for n in ("normal", "normal-long", "llf", "seal")}
    assert subset.published == ()


def test_another_copy_of_the_official_images_is_refused(board: Path, tmp_path: Path) -> None:
    submit_probes(board, "first")
    copied = fakes.official("dogs", images="f")
    other = write_probe(tmp_path / "b", 0.7, copied, "b")
    with pytest.raises(ValidationFailed, match="second and first: other images of dogs"):
        submit(tmp_path / "b", board, named("second"))
    assert Board.open(board).names() == ["first"]
    assert submit(tmp_path / "b", tmp_path / "free", named("second"))
    (first, *_) = submit(tmp_path / "b", board, named("first"), replace=True)
    assert first.loaded[0].result == other


def test_no_entry_locks_out_others_where_the_ids_are_pinned(tmp_path: Path) -> None:
    """Where the board names the ids of the images, a wrong fingerprint excludes nobody else."""
    spec = EpisodicSpec(image=ImageSpec(input_size=64))
    outcomes = fakes.episodes(spec, fakes.official("eurosat"), range(600), 0.5)
    for name, ids, images in (
        ("forged", all_facts()["eurosat"].startup.full_hash, "f"),
        ("honest", all_facts()["eurosat"].startup.full_hash, "e"),
        ("renamed", "d" * 64, "e"),
    ):
        data = fakes.official("eurosat").model_copy(
            update={"images_hash": ids, "fingerprint": images * 64}
        )
        fakes.store(tmp_path / name, spec, outcomes, name=name, data=data)
    board = tmp_path / "cdfsl"
    init_board(board, "cdfsl")
    submit(tmp_path / "forged", board, named("forged"))
    with pytest.raises(ValidationFailed, match="other images"):
        submit(tmp_path / "renamed", board, named("renamed"))
    submit(tmp_path / "honest", board, named("honest"))
    assert Board.open(board).names() == ["forged", "honest"]


@pytest.mark.parametrize(
    "facts",
    [
        {"source": "py", "ref": "py:nets.py:make", "code": "a" * 64},
        {"source": "file", "ref": "a.pt@py:nets.py:make", "code": "a" * 64},
        {"source": "module", "ref": "module:mine"},
        {"ref": "module:mine"},
        {"source": "plugin", "ref": "plugin:net"},
    ],
)
def test_code_of_the_submitter_is_refused(board: Path, tmp_path: Path, facts: Content) -> None:
    write_probe(tmp_path / "results", 0.5, fakes.official("mit67"), "a", **facts)
    message = f"{facts['ref']}, expected a reference that needs no code"
    with pytest.raises(ValidationFailed, match=message):
        submit(tmp_path / "results", board, DECLARATION)


def test_subsets_settle_no_copy_and_follow_none(board: Path, tmp_path: Path) -> None:
    for name, images in (("a", "1"), ("z", "2")):
        part = fakes.official("dogs", subset=True, images=images)
        write_probe(tmp_path / name, 0.7, part, name)
    submit(tmp_path / "a", board, named("a"))
    submit_probes(board, "official")
    submit(tmp_path / "z", board, named("z"))
    assert Board.open(board).names() == ["a", "official", "z"]


def test_what_is_no_column_is_left_out_or_refused(
    board: Path, tmp_path: Path, cli: CommandLine
) -> None:
    toys = tmp_path / "toys"
    fakes.write(toys, data=fakes.official())
    with pytest.raises(ValidationFailed, match=r"no column of transfer-2.*flowers102:probe 224px"):
        submit(toys, board, named("toys"))
    write_probe(toys, 0.7, fakes.official("dogs"), "a")
    fakes.declare(toys)
    shown = " ".join(cli("submit", toys, "--board", board).err.split())
    left_out = "toy_tiles:5w1s/linear@ibm 32px n_query=5"
    assert f"entry: left out, no column of the board: {left_out}" in shown
    assert [str(result.task) for result in read(board / "entry")] == ["dogs:probe"]


def test_an_empty_official_board_shows_its_first_track(board: Path) -> None:
    (view,) = rank_board(board)
    assert view.track == Track(protocol=None, input_size=224, adaptation="probe", data="official")
    assert view.ranking.columns == tuple(f"{name}:probe 224px" for name in sorted(SETS))


def test_the_command_line_from_list_to_table(tmp_path: Path, cli: CommandLine) -> None:
    versions = cli.json("ls", "boards")
    columns = {version["board"]: len(version["columns"]) for version in versions}
    assert columns == {"cdfsl-2": 448, "transfer-2": 20, "transfer-3": 10}
    board = tmp_path / "board"
    init = ("leaderboard", "init", "--board", board)
    for title, start in (("transfer", "transfer-3 (10"), ("transfer-2", "transfer-2 (20")):
        (board / "board.json").unlink(missing_ok=True)
        shown = cli(*init, "--official", title).out
        assert shown.startswith(f"{board}: {start} columns, 2026-11-2")
    assert "already has a board.json" in cli(*init, code=2).err
    submit_probes(board, "one")
    (table,) = cli.json("leaderboard", "show", "--board", board)
    assert (table["board"], table["official"]) == ("transfer-2", True)
    assert (table["track"]["data"], table["track"]["input_size"]) == ("official", 224)
    assert table["entries"][0]["tier"] == 1
    shown = cli("leaderboard", "show", "--board", board).out
    assert "transfer-2: probe 224px official" in shown


def test_init_writes_what_is_asked_and_nothing_over(tmp_path: Path) -> None:
    free = BoardFile(name="my-board", about=ABOUT)
    assert init_board(tmp_path / "my board") == free
    assert Board.open(tmp_path / "my board").file == free
    for title, message in (("cdfls", "did you mean 'cdfsl'"), ("cdfsl-9", "cdfsl-9")):
        with pytest.raises(UnknownName, match=message):
            init_board(tmp_path / "x", title)
    assert not (tmp_path / "x").exists()
    add_entry(tmp_path / "full")
    (tmp_path / "full" / "board.json").unlink()
    with pytest.raises(UsageError, match="already holds entries"):
        init_board(tmp_path / "full", "cdfsl")
    assert init_board(tmp_path / "full").name == "full"
