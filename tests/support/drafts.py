"""Drafts of the official boards: `PYTHONPATH=tests python -m support.drafts` writes new versions.

A draft has the columns of the newest version, with the specs that the command line evaluates under
their names; when a default changes, a test demands a new version. Files that exist are never
changed. The hashes of the official images are not published, so that fingerprints are null: their
number is asserted, and the hash of STARTUP's lists of ids.
"""

from datetime import UTC, datetime

from fsbench.api.listing import protocol_specs
from fsbench.api.options import TaskOptions
from fsbench.api.request import EvaluationRequest
from fsbench.core.io import write_record
from fsbench.core.specs import EpisodicSpec, ImageSpec, Spec
from fsbench.core.tasks import ColumnId
from leaderboard.official import BOARDS, find_official_board
from leaderboard.record import BoardFile

CHOICES = {("held-out",): (), ("lr-held-out",): ("probe.epoch=last",), (): ("probe.select=test",)}
"""Variant of a column of probes -> settings of the command line that fill it."""


def make_spec(name: ColumnId) -> Spec:
    """Return what the command line evaluates for a column of this name."""
    task = name.task
    if task.probe:
        options = TaskOptions(input_size=name.input_size, set=CHOICES[name.variant])
        return EvaluationRequest((task,), options).spec(task, None)
    spec = protocol_specs()[task.mode]
    assert isinstance(spec, EpisodicSpec)
    episode = spec.episode.model_copy(update={"k_shot": task.n_shot})
    image = ImageSpec(input_size=name.input_size)
    return spec.model_copy(update={"episode": episode, "image": image})


def draft(name: str) -> BoardFile:
    """Return the newest version of a board, or the next one if a default of a column changed."""
    newest = find_official_board(name)
    columns = tuple(
        column.model_copy(update={"spec_digest": make_spec(column.name).digest()})
        for column in newest.columns or ()
    )
    if columns == newest.columns:
        return newest
    today = datetime.now(UTC).date().isoformat()
    changes = {"version": (newest.version or 0) + 1, "date": today, "columns": columns}
    return newest.model_copy(update=changes).freeze()


if __name__ == "__main__":
    for made in map(draft, ("cdfsl", "transfer")):
        path = BOARDS / f"{made.title}.json"
        if not path.exists():
            write_record(path, made)
