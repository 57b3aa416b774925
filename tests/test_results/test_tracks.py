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
from fsbench.results.entry import Loaded
from fsbench.results.verification import find_entries
from leaderboard.tables import rank_board


def write(root: Path, groups: str = "a" * 64, shots: int = 1) -> None:
    """Four versions of one task, and a probe of the smaller size."""
    base = fakes.episodic(shots).model_dump()
    for protocol, pool, size in (
        ("ibm", "full", 32),
        ("startup", "labeled_80", 32),
        ("ibm-disjoint", "full", 32),
        ("ibm", "full", 84),
    ):
        is_disjoint = protocol.endswith("disjoint")
        track = {"pool": pool, "track": "disjoint" if is_disjoint else "classic"}
        changes = {"protocol": protocol, "episode": base["episode"] | track}
        spec = EpisodicSpec.model_validate(base | changes | {"image": {"input_size": size}})
        of_images = {"pool": pool, "groups": groups if is_disjoint else None}
        data = fakes.dataset().model_copy(update=of_images)
        classic = spec.model_copy(update={"episode": spec.episode.classic})
        records = fakes.episodes(classic, data, range(40), 0.6, protocol)
        fakes.store(root, spec, records, data=data)
    fakes.write_probe(root)


def test_show_prints_a_table_a_version(tmp_path: Path, cli: CommandLine) -> None:
    write(tmp_path)
    out = cli("show", tmp_path).out
    assert sorted(line for line in out.splitlines() if line.startswith("results")) == [
        "results 32px · custom · derived",
        "results ibm 32px · custom",
        "results ibm 84px · custom",
        "results ibm-disjoint 32px · custom",
        "results startup 32px · custom",
    ]
    for part in out.split("results ")[1:]:
        protocol = part.split()[0]
        assert (f"folder-blobs:5w1s/linear@{protocol}" in part) != ("folder-blobs:probe" in part)


def test_a_board_ranks_every_version_on_its_own_over_its_first_groups(tmp_path: Path) -> None:
    """The columns of a board are those of its first entry, groups included."""
    write(tmp_path / "r")
    submit(tmp_path / "r", tmp_path / "board", DECLARATION)
    versions = ("ibm 32px", "ibm 84px", "ibm-disjoint 32px", "startup 32px")
    names = [f"folder-blobs:5w1s/linear@{version} n_query=5" for version in versions]
    columns = [table.ranking.columns for table in rank_board(tmp_path / "board")]
    assert sorted(columns) == [*((name,) for name in names), ("folder-blobs:probe 32px",)]
    write(tmp_path / "other", groups="b" * 64)
    with pytest.raises(ValidationFailed, match=r"1 problem.*\n.*ibm-disjoint.*other images"):
        submit(tmp_path / "other", tmp_path / "board", DECLARATION.model_copy(update={"name": "o"}))
    write(tmp_path / "r", groups="b" * 64, shots=3)
    with pytest.raises(ValidationFailed, match="several groupings in one entry of folder-blobs"):
        submit(tmp_path / "r", tmp_path / "new", DECLARATION)
    with pytest.raises(ValidationFailed, match="made with other images or groups"):
        write(tmp_path / "r", groups="b" * 64)


def test_disjoint_results_without_their_groups_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "r")
    (folder,) = find_entries(tmp_path / "r")

    def change(loaded: Loaded) -> tuple[Result, Records]:
        data = loaded.result.dataset.model_copy(update={"groups": None})
        return loaded.result.model_copy(update={"dataset": data}), loaded.records

    rewrite(folder, change)
    with pytest.raises(ValidationFailed, match="states no groups of images on the track disjoint"):
        submit(tmp_path / "r", tmp_path / "board", DECLARATION)
