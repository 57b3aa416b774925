"""Drafts of the official boards: `PYTHONPATH=tests python -m support.drafts` writes new versions.

A draft follows the present defaults; when a default changes, a test demands a new version. Files
that exist are never changed.
"""

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
from leaderboard.official import BOARDS
from leaderboard.record import BoardFile, Column

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
                episode=EpisodeSpec(**SAMPLING[protocol]._asdict(), k_shot=k_shot),
                image=ImageSpec(input_size=size),
            )
            columns.append(draft_column(dataset, spec))
    return BoardFile(
        name="cdfsl",
        version=2,
        date="2026-11-23",
        about="Cross-domain few-shot learning: four targets, 1 to 50 shots. Beside the heads of "
        "the papers, logistic regression on features of length 1, whose accuracy does not depend "
        f"on the scale of features. {LISTED_IMAGES}",
        official=True,
        columns=tuple(columns),
    ).freeze()


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
    return BoardFile(
        name="transfer",
        version=3,
        date="2026-11-25",
        about=f"Linear probes of five natural image sets. {UNKNOWN_IMAGES}",
        official=True,
        columns=tuple(columns),
    ).freeze()


def draft_column(dataset: str, spec: Spec) -> Column:
    """Return a column with the number of official images and the hash of their ids, if known."""
    from fsbench.data.catalog import all_facts

    startup = isinstance(spec, EpisodicSpec) and spec.episode.pool == "labeled_80"
    lists = all_facts()[dataset].startup
    return Column(
        name=ColumnId.of(TaskId.of(dataset, spec), spec),
        spec_digest=spec.digest(),
        fingerprint=None,
        images=None if startup else all_facts()[dataset].n_images,
        images_hash=lists and (lists.labeled_80_hash if startup else lists.full_hash),
    )


if __name__ == "__main__":
    for draft in (draft_cdfsl(), draft_transfer()):
        path = BOARDS / f"{draft.title}.json"
        if not path.exists():  # a version is never changed
            write_record(path, draft)
