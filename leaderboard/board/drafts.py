"""How the files of boards/ came about: `python -m leaderboard.board.drafts` writes what is not
there yet.

A draft follows the present defaults of the suite. Once its file is written the draft no longer
matters to readers; when a default changes, a test says that a new version is due.
"""

from __future__ import annotations

from itertools import product

from fsbench.core.io import write_record
from fsbench.core.specs import (
    SAMPLING,
    EpisodeSpec,
    EpisodicSpec,
    ImageSpec,
    ProbeSpec,
    Protocol,
    Spec,
)
from fsbench.core.tasks import ColumnId, TaskId
from fsbench.data.catalog import TARGETS, all_facts, groups
from leaderboard.board.columns import Column
from leaderboard.board.definition import BoardFile
from leaderboard.board.official import BOARDS

SIZES = (224, 64)
SHOTS = (1, 5, 20, 50)
HEADS = ("linear", "affine", "soft_kmeans")
PROTOCOLS: tuple[Protocol, ...] = ("ibm", "startup", "ibm-disjoint", "startup-disjoint")
UNKNOWN = (
    "The hashes of the official images are not published, so fingerprints are null: the number of "
    "images is asserted, and for the startup pool the hash of its list of ids."
)


def cdfsl() -> BoardFile:
    """CD-FSL: 5-way, 15 queries, 600 episodes; linear and affine as in SEAL Tables 4 and 5, and the
    one head that is transductive."""
    cells = product(HEADS, PROTOCOLS, SIZES, groups()["cdfsl"], SHOTS)
    columns = [
        column(dataset, episodic(head, protocol, size, k))
        for head, protocol, size, dataset, k in cells
        if SAMPLING[protocol].track == "classic" or all_facts()[dataset].groups
    ]
    return BoardFile.freeze(
        name="cdfsl",
        version=1,
        date="2026-11-21",
        about=f"Cross-domain few-shot learning: four targets, 1 to 50 shots. {UNKNOWN}",
        official=True,
        columns=columns,
    )


def transfer() -> BoardFile:
    """Linear probes on official splits, as in SEAL Table 1; the rate as the paper chose it, best on
    the test images, and chosen on images held out of the training part."""
    probes = (ProbeSpec(held_out=0.1), ProbeSpec(held_out=0.1, select="held_out"))
    columns = [
        column(dataset, probe.model_copy(update={"image": ImageSpec(input_size=size)}))
        for probe, size, dataset in product(probes, SIZES, groups()["transfer"])
    ]
    return BoardFile.freeze(
        name="transfer",
        version=1,
        date="2026-11-21",
        about=f"Linear probes of five natural image sets. {UNKNOWN}",
        official=True,
        columns=columns,
    )


def episodic(head: str, protocol: Protocol, size: int, k_shot: int) -> EpisodicSpec:
    return EpisodicSpec(
        adaptation=head,
        episode=EpisodeSpec(protocol=protocol, k_shot=k_shot),
        image=ImageSpec(input_size=size),
    )


def column(dataset: str, spec: Spec) -> Column:
    """What is known of its official images: how many, or which where a list of ids is published."""
    startup = isinstance(spec, EpisodicSpec) and spec.episode.pool == "labeled_80"
    lists = getattr(TARGETS.load(dataset), "LISTS", None)
    return Column(
        name=ColumnId.of(TaskId.of(dataset, spec), spec),
        spec_digest=spec.digest(),
        fingerprint=None,
        images=None if startup else all_facts()[dataset].n_images,
        images_hash=lists.labeled_80_hash if startup and lists else None,
    )


def write(file: BoardFile) -> bool:
    """Whether it was written: a version that lies there stays as it is."""
    path = BOARDS / f"{file.title}.json"
    if new := not path.exists():
        write_record(path, file)
    return new


if __name__ == "__main__":
    for draft in (cdfsl(), transfer()):
        write(draft)
