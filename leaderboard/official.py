"""The official boards: one file per version below boards/, which is never changed.

A board folder contains a copy of its version, so its tables stay the same when newer versions come.
The copy must equal the file of this fsbench; otherwise reading it fails and says what differs.

`python -m leaderboard.official` writes the drafts below as files that do not exist yet. A
draft follows the present defaults; when a default changes, a test demands a new version.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from fsbench.core.errors import UnknownName, ValidationFailed
from fsbench.core.io import read_record, write_record
from fsbench.core.specs import (
    SAMPLING,
    EpisodeSpec,
    EpisodicSpec,
    ImageSpec,
    ProbeSpec,
    Protocol,
    Spec,
)
from fsbench.core.tasks import ColumnId, TaskId, Track
from leaderboard.record import RULE, BoardFile, Column, find_differing_keys

BOARDS = Path(__file__).resolve().parent / "boards"
BOARD_FILE = "board.json"
SHOWN = 4
"""Maximum number of columns that a message names."""
OFFICIAL_HEADER = ("board", "date", "track", "columns", "data sets", "tasks")
OFFICIAL_NOTE = (
    "Every track has two tables: official data, where an entry needs all columns and no flag, and "
    "`subset`, which takes the same columns with flags. fsbench leaderboard init "
    "--board DIR --official NAME starts a board."
)
SIZES = (224, 64)
SHOTS = (1, 5, 20, 50)
HEADS = ("linear", "logistic", "affine", "soft_kmeans")
PROTOCOLS: tuple[Protocol, ...] = ("ibm", "startup", "ibm-disjoint", "startup-disjoint")
UNKNOWN_IMAGES = (
    "The hashes of the official images are not published, so fingerprints are null: the number of "
    "images is asserted, and for the startup pool the hash of its list of ids."
)
LISTED_IMAGES = (
    "The hashes of the image files are not published, so fingerprints are null: the hash of the "
    "list of image ids is asserted, which follows from the two lists of STARTUP, "
    "https://github.com/cpphoo/STARTUP, datasets/split_seed_1."
)


@cache
def load_official_boards() -> tuple[BoardFile, ...]:
    """Return all versions of all official boards, by name, the newest last."""
    files = [read_record(path, BoardFile) for path in BOARDS.glob("*.json")]
    return tuple(sorted(files, key=lambda file: (file.name, file.version or 0)))


def find_official_board(name: str, version: int | None = None) -> BoardFile:
    """Return a version of an official board, by default the newest. Raises UnknownName."""
    titles = {file.title: file for file in load_official_boards()}
    newest = {file.name: file for file in load_official_boards()}
    boards = titles if version is not None else {**titles, **newest}
    title = name if version is None else f"{name}-{version}"
    if title not in boards:
        raise UnknownName("official board", title, boards)
    return boards[title]


def read_board_file(path: Path) -> BoardFile:
    """Read board.json. Raises ValidationFailed if a frozen field was changed, saying which."""
    file = read_record(path, BoardFile)
    if file.frozen is None:
        return file
    shipped = {board.title: board for board in load_official_boards()}
    if file.title not in shipped and file.name in {board.name for board in shipped.values()}:
        raise ValidationFailed(
            f"{path} is {file.title}; this fsbench knows {', '.join(shipped)}", fix="update fsbench"
        )
    changes = describe_changes(file, shipped.get(file.title, file)) or file.changed()
    if changes:
        raise ValidationFailed(
            f"{path}: the frozen board {file.title} was changed: {'; '.join(changes)}",
            fix="restore the file; use another name for a board with other columns or rules",
        )
    return file


def describe_changes(file: BoardFile, shipped: BoardFile) -> list[str]:
    """Return how a copy of an official board differs from the file of this fsbench."""
    changed = find_differing_keys(file.digests(), shipped.digests())
    plain = [
        f"{field} is {getattr(file, field)!r}, not {getattr(shipped, field)!r}"
        for field in changed
        if field != "columns"
    ]
    moved = describe_column_changes(file.columns or (), shipped.columns or ())
    return plain + (moved if "columns" in changed else [])


def describe_column_changes(copy: Sequence[Column], shipped: Sequence[Column]) -> list[str]:
    """Return the missing, added and changed columns by name."""
    copied, expected = ({str(c.name): c for c in columns} for columns in (copy, shipped))
    names_by_kind = {
        "missing columns": [name for name in expected if name not in copied],
        "added columns": [name for name in copied if name not in expected],
        "changed columns": [n for n in copied if n in expected and copied[n] != expected[n]],
    }
    changes = []
    for kind, names in names_by_kind.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        changes += [f"{kind}: {', '.join(names[:SHOWN])}{more}"] if names else []
    return changes or ["columns in another order"]


def draft_cdfsl() -> BoardFile:
    """Draft CD-FSL: 5-way, 15 queries, 600 episodes, with four heads.

    Linear heads and affine tuning are those of SEAL, Tables 4 and 5; both depend on the scale of
    features. Logistic regression on features of length 1 does not. Soft k-means is transductive.
    """
    from fsbench.data.catalog import all_facts, dataset_groups

    columns = []
    for head, protocol, size, dataset, k_shot in product(
        HEADS, PROTOCOLS, SIZES, dataset_groups()["cdfsl"], SHOTS
    ):
        if SAMPLING[protocol].track == "classic" or all_facts()[dataset].groups:
            spec = EpisodicSpec(
                adaptation=head,
                episode=EpisodeSpec(protocol=protocol, k_shot=k_shot),
                image=ImageSpec(input_size=size),
            )
            columns.append(draft_column(dataset, spec))
    return BoardFile.freeze(
        name="cdfsl",
        version=2,
        date="2026-11-23",
        about="Cross-domain few-shot learning: four targets, 1 to 50 shots. Beside the heads of "
        "the papers, logistic regression on features of length 1, whose accuracy does not depend "
        f"on the scale of features. {LISTED_IMAGES}",
        official=True,
        columns=columns,
    )


def draft_transfer() -> BoardFile:
    """Draft linear probes on official splits of SEAL, Table 1, with the default choice of rate.

    Learning rate and epoch are chosen on held-out training images. The best ones on the test
    images, which the paper reports, are part of every result and stand beside the score.
    """
    from fsbench.data.catalog import dataset_groups

    probe = ProbeSpec(held_out=0.1, select="held_out", epoch="best")
    columns = [
        draft_column(dataset, probe.model_copy(update={"image": ImageSpec(input_size=size)}))
        for size, dataset in product(SIZES, dataset_groups()["transfer"])
    ]
    return BoardFile.freeze(
        name="transfer",
        version=3,
        date="2026-11-25",
        about=f"Linear probes of five natural image sets. {UNKNOWN_IMAGES}",
        official=True,
        columns=columns,
    )


def draft_column(dataset: str, spec: Spec) -> Column:
    """Return a column with the number of official images and the hash of their ids, if known."""
    from fsbench.data.assembly import StartupLists
    from fsbench.data.catalog import TARGETS, all_facts

    startup = isinstance(spec, EpisodicSpec) and spec.episode.pool == "labeled_80"
    named = getattr(TARGETS.load(dataset), "LISTS", None)
    lists = named if isinstance(named, StartupLists) else None
    return Column(
        name=ColumnId.of(TaskId.of(dataset, spec), spec),
        spec_digest=spec.digest(),
        fingerprint=None,
        images=None if startup else all_facts()[dataset].n_images,
        images_hash=lists and (lists.labeled_80_hash if startup else lists.full_hash),
    )


def list_official_tracks() -> list[tuple[str, ...]]:
    """Return a row of OFFICIAL_HEADER for every track of every version."""
    rows: list[tuple[str, ...]] = []
    for file in load_official_boards():
        for track, columns in group_by_track(file).items():
            label = track.label.removesuffix(" official")
            datasets = ", ".join(dict.fromkeys(c.name.task.dataset for c in columns))
            shapes = ", ".join(dict.fromkeys(c.name.task.shape for c in columns))
            rows.append((file.title, file.date or "-", label, str(len(columns)), datasets, shapes))
    return rows


def group_by_track(file: BoardFile) -> dict[Track, list[Column]]:
    """Return the columns of each track on official data."""
    tracks: dict[Track, list[Column]] = {}
    for column in file.columns or ():
        tracks.setdefault(Track.of(column.name, "official"), []).append(column)
    return tracks


def describe_official_boards() -> list[dict[str, Any]]:
    """Return every version with its rule in words and its tracks."""
    return [
        {
            **file.model_dump(mode="json"),
            "title": file.title,
            "rule": RULE,
            "tracks": [
                {
                    **track.model_copy(update={"data": data}).model_dump(mode="json"),
                    "columns": [str(column.name) for column in columns],
                }
                for data in ("official", "subset")
                for track, columns in group_by_track(file).items()
            ],
        }
        for file in load_official_boards()
    ]


if __name__ == "__main__":
    for draft in (draft_cdfsl(), draft_transfer()):
        path = BOARDS / f"{draft.title}.json"
        if not path.exists():  # a version is never changed
            write_record(path, draft)
