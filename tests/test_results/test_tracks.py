"""Numbers of two protocols or input sizes never stand in one table, on a screen or on a board."""

from pathlib import Path

import pytest
from support import fakes
from support.cli import CommandLine
from support.fakes import DECLARATION
from support.forged import rewrite

from fsbench.api.submit import submit
from fsbench.core.errors import ValidationFailed
from fsbench.core.records import Records
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import ColumnId, by_track
from fsbench.results.entry import Loaded
from fsbench.results.store import ResultStore
from fsbench.results.verification import find_entries
from leaderboard.tables import rank_board

CLASSIC, STARTUP = "linear@ibm 32px", "linear@startup 32px"
LARGE, DISJOINT = "linear@ibm 84px", "linear@ibm-disjoint 32px"


def test_probes_stand_with_every_version_of_their_size() -> None:
    columns = [
        "x:probe 64px",
        "x:5w1s/linear@ibm 64px",
        "x:5w1s/affine@ibm 64px bn-train",
        "x:5w1s/linear@ibm-disjoint 64px",
        "x:5w1s/linear@ibm 224px",
        "x:probe 84px",
        "y:knn 84px",
        "x:probe 64px",
    ]
    assert {
        track.label: [str(column) for column in members]
        for track, members in by_track(map(ColumnId.parse, columns)).items()
    } == {
        "ibm 64px": columns[:3],
        "ibm-disjoint 64px": [columns[0], columns[3]],
        "ibm 224px": [columns[4]],
        "84px": [columns[5], columns[6]],
    }
    assert by_track([]) == {}


def write(
    root: Path, accuracy: float, name: str = "a", groups: str = "a" * 64, shots: int = 1
) -> None:
    """Four versions of one cell, and a probe of the smaller size."""
    base = fakes.episodic(shots).model_dump()
    for protocol, pool, track, size in (
        ("ibm", "full", "classic", 32),
        ("startup", "labeled_80", "classic", 32),
        ("ibm-disjoint", "full", "disjoint", 32),
        ("ibm", "full", "classic", 84),
    ):
        episode = base["episode"] | {"pool": pool, "track": track}
        spec = EpisodicSpec.model_validate(
            base | {"protocol": protocol, "episode": episode, "image": {"input_size": size}}
        )
        digest = groups if track == "disjoint" else None
        data = fakes.dataset().model_copy(update={"pool": pool, "groups": digest})
        classic = spec.model_copy(update={"episode": spec.episode.classic})
        cell = ResultStore(root, fakes.facts(name), data, spec)
        cell.write_block(0, fakes.episodes(classic, data, range(40), accuracy, name + protocol))
        cell.finish(range(40), provenance=fakes.provenance())
    fakes.write_probe(root, accuracy, name=name)


def titles(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("results")]


def test_show_prints_a_table_a_version(tmp_path: Path, cli: CommandLine) -> None:
    write(tmp_path, 0.6)
    out = cli("show", tmp_path).out
    assert sorted(titles(out)) == [
        "results ibm 32px: linear@ibm · custom",
        "results ibm 84px · custom",
        "results ibm-disjoint 32px: linear@ibm-disjoint · custom",
        "results startup 32px: linear@startup · custom",
    ]
    for part in out.split("results ")[1:]:
        protocol, size = part.replace(":", " ").split()[:2]
        (episodic,) = (line for line in part.splitlines() if "5w" in line)
        assert episodic.startswith("folder-blobs:5w1s")
        assert f"linear@{protocol}" in part
        assert ("probe" in part) == (size == "32px")


def test_a_board_ranks_every_version_on_its_own(tmp_path: Path, cli: CommandLine) -> None:
    write(tmp_path / "r", 0.6)
    fakes.write(tmp_path / "s", 0.9, name="b")
    board = tmp_path / "board"
    for folder, name in (("r", "all"), ("s", "one")):
        declared = DECLARATION.model_copy(update={"name": name})
        submit(tmp_path / folder, board, declared)
    views = {view.ranking.columns: view for view in rank_board(board)}
    episodic = [columns for columns in views if any("5w" in name for name in columns)]
    assert episodic == [
        (f"folder-blobs:5w1s/{version} n_query=5",)
        for version in (CLASSIC, LARGE, DISJOINT, STARTUP)
    ]
    (probes,) = (columns for columns in views if columns not in episodic)
    assert len(probes) == 1
    assert "probe" in probes[0]
    classic = next(v for c, v in views.items() if any(CLASSIC in name for name in c))
    assert {s.name for s in classic.ranking.entries} == {"all", "one"}
    others = [view for view in views.values() if view is not classic]
    assert all([s.name for s in view.ranking.entries] == ["all"] for view in others)
    shown = cli.json("leaderboard", "show", "--board", board)
    names = [tuple(column["name"] for column in table["columns"]) for table in shown]
    assert names == list(views)


def test_other_groups_of_the_same_images_are_refused(tmp_path: Path) -> None:
    """The columns of a board are those of its first entry, groups included."""
    board = tmp_path / "board"
    for name, groups in (("x", "a" * 64), ("y", "b" * 64)):
        write(tmp_path / name, 0.6, name, groups)
    submit(tmp_path / "x", board, DECLARATION.model_copy(update={"name": "x"}))
    with pytest.raises(ValidationFailed, match=r"1 problem.*\n.*ibm-disjoint.*other images"):
        submit(tmp_path / "y", board, DECLARATION.model_copy(update={"name": "y"}))


def test_all_disjoint_results_of_an_entry_have_the_same_groups(tmp_path: Path) -> None:
    write(tmp_path / "r", 0.6)
    write(tmp_path / "r", 0.6, shots=2)
    submit(tmp_path / "r", tmp_path / "board", DECLARATION)
    write(tmp_path / "r", 0.6, groups="b" * 64, shots=3)
    with pytest.raises(ValidationFailed, match="several groupings in one entry of folder-blobs"):
        submit(tmp_path / "r", tmp_path / "other", DECLARATION)


def test_a_result_does_not_grow_by_episodes_of_other_groups(tmp_path: Path) -> None:
    write(tmp_path, 0.6)
    with pytest.raises(ValidationFailed, match="made with other images or groups"):
        write(tmp_path, 0.6, groups="b" * 64)


def test_a_candidate_whose_disjoint_groups_are_missing_or_differ_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "r", 0.6)
    (folder,) = find_entries(tmp_path / "r")
    for groups, match in ((None, "it states no groups of images on the track disjoint"),
                          ("b" * 64, "[0-9a-f]{64}, expected [0-9a-f]{64}")):  # fmt: skip

        def change(loaded: Loaded, groups: str | None = groups) -> tuple[Result, Records]:
            data = loaded.result.dataset
            if "disjoint" in str(loaded.result.column):
                data = data.model_copy(update={"groups": groups})
            return loaded.result.model_copy(update={"dataset": data}), loaded.records

        rewrite(folder, change)
        with pytest.raises(ValidationFailed, match=match):
            submit(tmp_path / "r", tmp_path / "board", DECLARATION)
