"""No table mixes two tracks, whatever lies on a board; every result stands where it belongs."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fakes

from fsbench.core.schema import Flag, Result
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, ImageSpec, ProbeSpec, Spec
from fsbench.core.tasks import ColumnId, Data, TaskId, Track
from fsbench.data.catalog import all_facts
from leaderboard.official import find_official_board
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.tables import classify_data, find_ranked_column, split_by_track

PROTOCOLS = ("ibm", "startup", "ibm-disjoint", "startup-disjoint")
HEADS = ("linear", "affine", "soft_kmeans")


@cache
def base() -> Result:
    with TemporaryDirectory() as folder:
        return fakes.write(Path(folder), data=fakes.official("toy_tiles"))


def result(
    spec: Spec, dataset: str, flags: Sequence[Flag] = (), images: str = "e", network: str = "a"
) -> Result:
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
    task = TaskId.of(dataset, spec)
    facts = base().backbone.model_copy(update={"weights_hash": network * 64})
    changes = {"task": task, "spec": spec, "spec_digest": spec.digest(), "dataset": data}
    changes |= {"backbone": facts}
    return base().model_copy(update={**changes, "flags": tuple(flags)})


def episodic(protocol: str = "ibm", head: str = "linear", size: int = 224, k: int = 1) -> Spec:
    episode = EpisodeSpec.model_validate({"protocol": protocol, "k_shot": k})
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
RESULTS = st.lists(
    st.builds(
        result,
        SPECS,
        st.sampled_from(("chestx", "isic", "dogs", "cub200")),
        st.sampled_from(((), ("subset",), ("short",), ("subset", "short"))),
        st.sampled_from("ef"),
        st.sampled_from("ab"),
    ),
    max_size=12,
)
FILES = st.sampled_from(("free", "cdfsl", "transfer"))


def board(name: str) -> BoardFile:
    if name == "free":
        return BoardFile(name=name)
    return find_official_board(name)


def facts(result: Result) -> tuple[object, ...]:
    """What two results of one table must share, read from the spec and not from any name."""
    spec = result.spec
    if not isinstance(spec, EpisodicSpec):
        return ("probe", spec.image.input_size)
    episode = spec.episode
    kind = spec.adaptation == "soft_kmeans"
    return (episode.pool, episode.track, spec.image.input_size, kind)


@settings(max_examples=60, deadline=None)
@given(FILES, RESULTS)
def test_no_table_mixes_two_tracks(name: str, results: list[Result]) -> None:
    file = board(name)
    for table in split_by_track(file, results):
        standing = [result for result in results if find_ranked_column(file, table, result)]
        episodes = {facts(result) for result in standing if isinstance(result.spec, EpisodicSpec)}
        assert len(episodes) <= 1
        assert len({result.spec.image.input_size for result in standing}) <= 1
        if any(kind for *_, kind in episodes):
            assert all(isinstance(result.spec, EpisodicSpec) for result in standing)
        if file.version is not None:
            assert len({bool(result.flags) for result in standing}) <= 1
            assert len({e.task.mode for e in standing}) <= 1
        for column in table.columns:
            assert table.track is not None
            whole = table.track.data or not table.track.adaptation
            update = {"images": None} | ({} if whole else {"adaptation": None})
            track = table.track.model_copy(update=update)
            assert track.takes(Track.of(column.name, table.track.data))


@settings(max_examples=60, deadline=None)
@given(FILES, RESULTS)
def test_every_result_of_a_column_stands_somewhere_and_no_other(
    name: str, results: list[Result]
) -> None:
    file = board(name)
    tables = split_by_track(file, results)
    for result in results:
        places = [table.track for table in tables if find_ranked_column(file, table, result)]
        belongs = file.version is None or result.column in file.named
        assert bool(places) == belongs
        if isinstance(result.spec, EpisodicSpec) or file.version is not None:
            assert len(places) == belongs


@settings(max_examples=40, deadline=None)
@given(FILES, RESULTS, st.randoms())
def test_the_order_of_results_does_not_matter(name, results, shuffler) -> None:  # type: ignore[no-untyped-def]
    file = board(name)
    mixed = list(results)
    shuffler.shuffle(mixed)
    first, again = (
        {t.track: set(t.columns) for t in split_by_track(file, r)} for r in (results, mixed)
    )
    assert first == again


TUNED = st.builds(episodic, st.just("ibm"), st.sampled_from(("linear", "affine")))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(result, TUNED, st.sampled_from(("isic", "dogs")), network=st.sampled_from("abc")),
        max_size=8,
    )
)
def test_networks_of_an_open_table_have_the_same_adaptations(results: list[Result]) -> None:
    for table in split_by_track(board("free"), results):
        tuned: dict[str, set[str]] = {}
        for result in results:
            if find_ranked_column(board("free"), table, result):
                heads = tuned.setdefault(result.backbone.weights_hash, set())
                heads.add(result.task.mode)
        assert len({*map(frozenset, tuned.values())}) <= 1


def name_columns(kind: str, results: Sequence[Result]) -> dict[str, set[ColumnId]]:
    """Track -> names of its columns."""
    tables = split_by_track(board(kind), results)
    return {t.track.label: {c.name for c in t.columns} for t in tables if t.track}


def test_a_network_without_affine_tuning_is_ranked_all_the_same() -> None:
    linear, affine, linear_b, affine_b = (
        result(episodic(head=head), "isic", network=network)
        for network in "ab"
        for head in ("linear", "affine")
    )
    probed, other_size = result(probe(), "isic"), result(episodic(size=64), "isic", network="c")
    both = [linear, affine, probed, linear_b, affine_b]
    networks = name_columns("free", both)
    assert networks == {
        "ibm 224px": {linear.column, affine.column},
        "probes 224px": {probed.column},
    }
    some = [*both, result(episodic(), "isic", network="c"), other_size]
    networks = name_columns("free", some)
    assert networks == {
        "ibm 64px": {other_size.column},
        "linear ibm 224px": {linear.column},
        "affine ibm 224px": {affine.column},
        "probes 224px": {probed.column},
    }
    assert list(networks).index("linear ibm 224px") < list(networks).index("affine ibm 224px")
    named = BoardFile(name="free", columns=(identify_column(linear), identify_column(affine)))
    (table,) = split_by_track(named, some)
    assert {c.name for c in table.columns} == {linear.column, affine.column}


def test_tables_of_an_official_board_by_hand() -> None:
    file = find_official_board("cdfsl")
    results = [
        result(episodic(), "chestx"),
        result(episodic(k=5), "chestx", ("short",)),
        result(episodic(head="affine"), "isic"),
        result(episodic(head="soft_kmeans"), "isic", images="f"),
        result(episodic(protocol="startup-disjoint", size=64), "isic"),
        result(probe(), "dogs"),
    ]
    tables = {table.track.label: table for table in split_by_track(file, results) if table.track}
    assert list(tables) == [
        "linear ibm 224px official",
        "linear startup-disjoint 64px official",
        "affine ibm 224px official",
        "soft_kmeans ibm 224px transductive official",
        "linear ibm 224px subset",
    ]
    assert [len(table.columns) for table in tables.values()] == [16, 12, 16, 16, 1]
    assert tables["linear ibm 224px official"].columns[0] == identify_column(results[0])
    assert [classify_data(one) for one in results[:2]] == ["official", "subset"]


def test_the_images_of_most_networks_make_the_main_table() -> None:
    """A deviating entry, even if it came first, leaves nobody else without a column."""
    early = result(episodic(), "isic", images="f", network="z")
    early = early.model_copy(
        update={"provenance": early.provenance.model_copy(update={"started": "2020-01-01"})}
    )
    honest = [
        result(episodic(), name, network=network) for network in "ab" for name in ("chestx", "isic")
    ]
    for file in (board("free"), board("cdfsl")):
        main, other = split_by_track(file, [early, *honest])
        assert {identify_column(one) for one in honest} <= set(main.columns)
        assert other.columns == (identify_column(early),)
        assert main.track is not None
        assert other.track is not None
        assert other.track.images is not None
        assert other.track.label.startswith(main.track.label)
        first, second = split_by_track(file, [early, result(episodic(), "isic")])
        assert identify_column(early) in first.columns, "of as many networks, the earlier one"
        assert identify_column(early) not in second.columns


@pytest.mark.parametrize(
    "change",
    [{"class_counts": (9,)}, {"fingerprint": "9" * 64}, {"images_hash": "9" * 64}],
)
def test_official_is_what_a_column_knows(change: dict[str, object]) -> None:
    whole = result(episodic(), "isic")
    column = Column(
        name=whole.column,
        spec_digest=whole.spec_digest,
        fingerprint=whole.dataset.fingerprint,
        images=10_015,
        images_hash=whole.dataset.images_hash,
    )
    assert column.has_images_of(whole)
    other = whole.model_copy(update={"dataset": whole.dataset.model_copy(update=change)})
    assert not column.has_images_of(other)
    assert not column.has_images_of(whole.model_copy(update={"flags": ("limited",)}))
    unknown = column.model_copy(update={"fingerprint": None, "images": None, "images_hash": None})
    assert unknown.has_images_of(other)


def track_of(text: str, data: Data | None = None) -> Track:
    return Track.of(ColumnId.parse(text), data)


def test_the_track_of_a_column_by_hand() -> None:
    assert track_of("a-b.c:5w20s/linear@startup-disjoint 84px bn-train") == Track(
        protocol="startup-disjoint", input_size=84
    )
    track = track_of("isic:5w1s/soft_kmeans@startup 64px transductive normalize=l2", "subset")
    assert track.label == "soft_kmeans normalize=l2 startup 64px transductive subset"
    assert (track.pool, track.groups) == ("labeled_80", "classic")
    assert track_of("dogs:probe 224px lr-held-out", "official").adaptation == "probe lr-held-out"
    probes = track_of("dogs:knn 64px")
    assert (probes.pool, probes.groups) == (None, None)
    assert track_of("isic:5w1s/linear@ibm 64px").takes(probes)
    assert not probes.takes(track_of("isic:5w1s/linear@ibm 64px"))
    for other in ("isic:5w1s/linear@ibm 224px", "isic:5w1s/soft_kmeans@ibm 64px transductive"):
        assert not track_of(other).takes(probes)
