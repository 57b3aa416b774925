"""Results of two sides whose paired outcomes are known."""

from pathlib import Path

import numpy as np
from support import fakes

from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodicSpec

N = 40
COUNT = 30
"""Images a class of the fake data set."""
TASK = "folder-blobs:5w1s/linear@ibm 32px n_query=5"


def write(
    root: Path,
    right: list[int],
    name: str,
    shots: int = 1,
    first: int = 0,
    dense: list[int] | None = None,
    adaptation: str = "linear",
) -> Path:
    """Results in which episode i has right[i] of its 25 queries right, and dense[i] of all that
    could have been queries in every class."""
    fields = fakes.episodic(shots).model_dump(exclude={"head"}) | {"adaptation": adaptation}
    data, spec = fakes.dataset(), EpisodicSpec.model_validate(fields)
    numbers = range(first, first + len(right))
    drawn = fakes.episodes(spec, data, numbers, 0.5)
    correct = np.roll(np.arange(25) < np.array(right)[:, None], shots, axis=1)
    records = EpisodeRecords(
        drawn.index,
        correct.reshape(-1, 5, 5),
        drawn.collapsed,
        drawn.finite,
        None if dense is None else np.repeat(np.array(dense)[:, None], 5, axis=1),
        None if dense is None else np.full((len(dense), 5), COUNT - shots),
    )
    fakes.store(root, spec, records, name=name, data=data)
    return root


def ahead(i: int) -> int:
    """Queries that A has right in episode i."""
    return 5 + (7 * i) % 13 + (2 if i % 2 else -1)


def pair(folder: Path) -> tuple[str, str]:
    """A is 2 queries ahead in half of the episodes and 1 behind in the others, at 1 and 5 shots;
    the episodes themselves vary far more."""
    a, b = [ahead(i) for i in range(N)], [5 + (7 * i) % 13 for i in range(N)]
    for shots in (1, 5):
        write(folder / "a", a, "a", shots)
        write(folder / "b", b, "b", shots)
    return str(folder / "a"), str(folder / "b")
