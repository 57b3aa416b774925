"""Tables of known gaps, and a frame of hostile names, for tests of renderings."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from support import fakes

from fsbench.core.tasks import Track
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.tiers import rank_entries
from leaderboard.render.frame import ScoreFrame, make_frame
from leaderboard.tables import BoardTable, Row, group_by_dataset

N = 100
COLUMNS = ("eurosat:5w1s/linear@ibm 64px", "eurosat:5w5s/linear@ibm 64px")
ERROR = 0.1 * (100 / 99) ** 0.5 / 10
"""Standard error of 100 outcomes that lie 0.1 above or below their mean in turn (ddof 1)."""
HOSTILE = (
    "=1+1",
    "a&b_c%d$e#f{g}h~i^j\\k",
    "<script>alert(1)</script>",
    "[x] -- ``q'' é日本|*",
    '"quoted", with; commas',
)


def swinging(mean: float) -> Outcomes:
    return Outcomes(np.arange(N), mean + 0.1 * np.where(np.arange(N) % 2, 1.0, -1.0), "draws")


def constant(mean: float) -> Outcomes:
    return Outcomes(np.arange(N), np.full(N, mean), "draws")


def view(
    entries: Mapping[str, Mapping[str, Outcomes]],
    columns: tuple[str, ...] = COLUMNS,
    flags: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None,
    sources: Mapping[str, float] | None = None,
    **fields: Any,
) -> BoardTable:
    """A table of entries trained on TinyImageNet. sources: their accuracies there."""
    ranking = rank_entries(entries, columns, averaged=group_by_dataset(columns))
    rows = {
        row.name: Row(
            row.name,
            fakes.facts(row.name, pretraining_data=("tinyimagenet",)),
            entries[row.name],
            column_flags=(flags or {}).get(row.name, {}),
            source=(sources or {}).get(row.name),
        )
        for row in ranking.entries
    }
    track = Track(protocol="ibm", input_size=64)
    return BoardTable(**{"name": "mine", "track": track} | fields, ranking=ranking, rows=rows)


def hostile() -> ScoreFrame:
    """One column; the first name is the control, the last is flagged."""
    column = "evil=&_:5w1s/linear@ibm 64px"
    entries = {name: {column: swinging(0.5 + 0.05 * i)} for i, name in enumerate(HOSTILE)}
    flags = {name: {column: ("subset",) if name == HOSTILE[-1] else ()} for name in HOSTILE}
    return make_frame(view(entries, (column,), flags, notes=("a note & more",)), HOSTILE[0])
