"""No table mixes two tracks, and columns never depend on entries that come later."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import fakes

from fsbench.core.schema import Flag, Result
from fsbench.core.specs import (
    SAMPLING,
    EpisodeSpec,
    EpisodicSpec,
    ImageSpec,
    ProbeSpec,
    Protocol,
    Spec,
)
from fsbench.core.tasks import ColumnId, Track
from fsbench.data.catalog import all_facts
from leaderboard.columns import TrackColumns, complete_columns, find_column, split_by_track
from leaderboard.official import find_official_board
from leaderboard.record import BoardFile, identify_column

PROTOCOLS = ("ibm", "startup", "ibm-disjoint", "startup-disjoint")
HEADS = ("linear", "affine", "soft_kmeans")


@cache
def base() -> Result:
    with TemporaryDirectory() as folder:
        return fakes.write(Path(folder), data=fakes.official("toy_tiles"))


def result(spec: Spec, dataset: str, flags: Sequence[Flag] = (), images: str = "e") -> Result:
    """A result without its records, on images of the official number."""
    total = all_facts()[dataset].n_images
    startup = isinstance(spec, EpisodicSpec) and spec.episode.pool == "labeled_80"
    disjoint = isinstance(spec, EpisodicSpec) and spec.episode.track == "disjoint"
    protocol = "startup" if startup else "ibm"
    column = find_official_board("cdfsl").named.get(
        ColumnId.parse(f"{dataset}:5w1s/linear@{protocol} 224px")
    )
    data = base().dataset.model_copy(
        update={
            "name": dataset,
            "pool": "labeled_80" if startup else "full",
            "class_counts": (total,),
            "fingerprint": images * 64,
            "images_hash": column.images_hash if column else "d" * 64,
            "groups": "a" * 64 if disjoint else None,
        }
    )
    return change(base(), spec=spec, dataset=data, flags=tuple(flags))


def change(result: Result, **fields: Any) -> Result:
    """The result with other fields, and what follows from them."""
    return Result.model_construct(
        **{name: getattr(result, name) for name in Result.model_fields} | fields
    )


def episodic(protocol: Protocol = "ibm", head: str = "linear", size: int = 224, k: int = 1) -> Spec:
    episode = EpisodeSpec(**SAMPLING[protocol]._asdict(), k_shot=k)
    raw = {"protocol": protocol, "adaptation": head, "episode": episode}
    return EpisodicSpec.model_validate(raw | {"image": ImageSpec(input_size=size)})


def probe(size: int = 224) -> Spec:
    return ProbeSpec(image=ImageSpec(input_size=size), held_out=0.1)


SPECS = st.one_of(
    st.builds(
        episodic,
        st.sampled_from(PROTOCOLS),
        st.sampled_from(HEADS),
        st.sampled_from((64, 224)),
        st.sampled_from((1, 5)),
    ),
    st.builds(probe, st.sampled_from((64, 224))),
)
RESULTS = st.builds(
    result,
    SPECS,
    st.sampled_from(("chestx", "isic", "dogs", "cub200")),
    st.sampled_from(((), ("subset",), ("short",), ("subset", "short"))),
    st.sampled_from("ef"),
)
ENTRIES = st.lists(st.lists(RESULTS, min_size=1, max_size=5), max_size=4)
"""The results of each entry, in the order in which entries came."""
FILES = st.sampled_from(("free", "together", "cdfsl", "transfer"))


def board(name: str, entries: Sequence[Sequence[Result]] = ()) -> BoardFile:
    """A board of this kind as it is after these entries came one by one."""
    file = BoardFile(name=name, heads="together" if name == "together" else "apart")
    if name not in ("free", "together"):
        file = find_official_board(name)
    for results in entries:
        file = complete_columns(file, [results])
    return file


def split(name: str, entries: Sequence[Sequence[Result]]) -> list[TrackColumns]:
    return split_by_track(board(name, entries), entries)


def facts(result: Result) -> tuple[object, ...]:
    """What two results of one table must share, read from the spec and not from any name."""
    spec = result.spec
    if not isinstance(spec, EpisodicSpec):
        return ("probe", spec.image.input_size)
    episode = spec.episode
    kind = spec.adaptation == "soft_kmeans"
    return (episode.pool, episode.track, spec.image.input_size, kind)


@settings(max_examples=60)
@given(FILES, ENTRIES)
def test_no_table_mixes_two_tracks_and_every_result_of_a_column_is_in_one(
    name: str, entries: list[list[Result]]
) -> None:
    file, tables = board(name, entries), split(name, entries)
    results = [result for of_entry in entries for result in of_entry]
    for result in results:
        is_column = file.version is None or find_column(file, result) is not None
        assert sum(table.find(result) is not None for table in tables) == is_column
    for table in tables:
        present = [result for result in results if table.find(result)]
        episodes = {facts(result) for result in present if isinstance(result.spec, EpisodicSpec)}
        assert len(episodes) <= 1
        assert len({result.spec.image.input_size for result in present}) <= 1
        if any(kind for *_, kind in episodes):
            assert all(isinstance(result.spec, EpisodicSpec) for result in present)
        if file.version is not None:
            assert len({bool(result.flags) for result in present}) <= 1
        if not table.is_extra and name != "together":
            assert len({result.task.mode for result in present}) <= 1
        for column in table.columns:
            whole = table.track.data or not table.track.adaptation
            update = {"extra": False} | ({} if whole else {"adaptation": None})
            track = table.track.model_copy(update=update)
            measured = Track.of(column.name, table.track.data)
            protocol = measured.protocol or track.protocol  # a probe has none
            assert measured.model_copy(update={"protocol": protocol}) == track


@settings(max_examples=60)
@given(FILES, ENTRIES, st.lists(RESULTS, min_size=1, max_size=5))
@example(
    "cdfsl", [[result(episodic(), "isic", ["subset"])]], [result(episodic(k=5), "isic", ["subset"])]
)
def test_an_entry_that_comes_later_changes_no_column(
    name: str, entries: list[list[Result]], later: list[Result]
) -> None:
    """Official tables have all columns of the board; those that nobody measured get images."""

    def ranked(some: list[list[Result]]) -> set[frozenset[object]]:
        """Columns of each table: those that the first entries measured, and names of others."""
        tables = [table for table in split(name, some) if not table.is_extra]
        return {
            frozenset(c if c in measured else c.name for c in table.columns)
            for table in tables
            if measured & table.labels.keys()
        }

    measured = {identify_column(result) for of_entry in entries for result in of_entry}
    assert ranked(entries) <= ranked([*entries, later])


LINEAR, AFFINE, SOFT = (result(episodic(head=head), "isic") for head in HEADS)
MORE, SMALL = result(episodic(k=5), "isic"), result(episodic(size=64), "isic")
MOVED, PROBED = result(episodic(), "isic", images="f"), result(probe(), "dogs")
CHESTX = result(episodic(), "chestx")
HEADS_APART = [[LINEAR, AFFINE, PROBED], [LINEAR], [SMALL]]
SPLITS: tuple[tuple[str, Sequence[Sequence[Result]], dict[str, set[ColumnId] | int]], ...] = (
    ("free", HEADS_APART, {
        "linear ibm 224px": {LINEAR.column},
        "linear ibm 64px": {SMALL.column},
        "affine ibm 224px": {AFFINE.column},
        "probe 224px": {PROBED.column},
    }),
    ("together", HEADS_APART, {
        "ibm 224px": {LINEAR.column, AFFINE.column},
        "ibm 64px": {SMALL.column},
        "probes 224px": {PROBED.column},
    }),
    ("free", [[LINEAR], [LINEAR, MORE, PROBED, MOVED]], {
        "linear ibm 224px": {LINEAR.column},
        "probe 224px": {PROBED.column},
        "linear ibm 224px extra columns": {LINEAR.column, MORE.column},
    }),
    ("cdfsl", [[CHESTX, change(MORE, flags=("short",)), AFFINE, SOFT, PROBED],
               [result(episodic("startup-disjoint", size=64), "isic")]], {
        "linear ibm 224px official": 16,
        "affine ibm 224px official": 16,
        "soft_kmeans ibm 224px transductive official": 16,
        "linear startup-disjoint 64px official": 12,
        "linear ibm 224px subset": 1,
    }),
)  # fmt: skip
"""Kind of board, the results of its entries, and track -> names of its columns, or their number."""


@pytest.mark.parametrize(("kind", "entries", "expected"), SPLITS)
def test_tables_by_hand(
    kind: str, entries: Sequence[Sequence[Result]], expected: dict[str, set[ColumnId] | int]
) -> None:
    """Nobody is left without a column by what a later entry measured: it is extra."""
    tables = {table.track.label: table for table in split(kind, entries)}
    assert {
        label: {c.name for c in table.columns} if kind != "cdfsl" else len(table.columns)
        for label, table in tables.items()
    } == expected
    linear, *_, last = tables
    assert linear.startswith("linear ibm") or kind == "together"
    assert "probe" in last or "extra" in last or "subset" in last


@pytest.mark.parametrize(
    "wrong", [{"class_counts": (9,)}, {"fingerprint": "9" * 64}, {"images_hash": "9" * 64}]
)
def test_official_is_what_a_column_knows(wrong: dict[str, object]) -> None:
    data = LINEAR.dataset
    more = {"images": 10_015, "images_hash": data.images_hash}
    column = identify_column(LINEAR).model_copy(update=more)
    assert column.has_images_of(LINEAR)
    other = change(LINEAR, dataset=data.model_copy(update=wrong))
    assert not column.has_images_of(other)
    assert not column.has_images_of(change(LINEAR, flags=("limited",)))
    unknown = column.model_copy(update={"fingerprint": None, "images": None, "images_hash": None})
    assert unknown.has_images_of(other)
