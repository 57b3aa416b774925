"""What the page says of one entry: declaration, backbone, provenance, commands."""

from __future__ import annotations

from typing import Any

from fsbench.core.schema import Provenance
from leaderboard.board.badges import Badge
from leaderboard.board.board import Entry
from leaderboard.submission.chain import build_chain

Facts = dict[str, Any]
BACKBONE = (
    "ref",
    "source",
    "architecture",
    "features",
    "feature_dim",
    "input_size",
    "n_parameters",
    "weights_hash",
    "recipe",
    "steps",
    "random_init",
    "source_accuracy",
)
DECLARED = ("authors", "link", "license", "pretraining_data", "targets_seen", "statement")
MADE_BY = ("device", "platform", "cpu_capability", "python", "fsbench", "git_commit", "threads")


def of_entry(entry: Entry, badge: Badge | None) -> Facts:
    """JSON of everything but the numbers; what is unknown is left out."""
    declaration, backbone = entry.file.declaration, entry.cells[0].result.backbone
    made = [cell.result.provenance for cell in entry.cells]
    found = {
        **{name: getattr(backbone, name) for name in BACKBONE},
        "chain": build_chain(entry.cells).end,
        "badge": badge and {"verdict": badge.verdict, "words": badge.words},
        "submitted": entry.file.submitted,
        "checked_by": entry.file.fsbench,
        "environments": distinct([environment(each) for each in made]),
        "commands": distinct([each.command for each in made]),
        "started": min(each.started for each in made),
        "seconds": round(sum(each.seconds for each in made), 1),
    }
    stated = {name: getattr(declaration, name) for name in DECLARED}
    return stated | {name: value for name, value in found.items() if value not in (None, ())}


def environment(made: Provenance) -> Facts:
    """Where a result was made; equal for most results of an entry."""
    own = {name: getattr(made, name) for name in MADE_BY if getattr(made, name) is not None}
    return own | {"packages": made.packages}


def distinct(values: list[Any]) -> list[Any]:
    """Each value once, in the order given; values need not be hashable."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
