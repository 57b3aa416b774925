"""How many episodes would tell two entries apart, from the spread of their paired outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fsbench.api.entries import Pair, shared
from fsbench.core import statistics
from fsbench.core.power import Goal, detectable, episodes_needed, standard_errors
from fsbench.core.specs import Frozen

OFFICIAL = 600


class Needed(Frozen):
    """One line of a plan; fractions.

    episodes: shared by both, of the smallest cell for the overall line; gap: mean of A - B; sd: of
    A - B per episode; detectable: gap that these episodes tell apart, detectable_600: that the
    official number does; needed: episodes a cell for the goal's gap.
    """

    task: str
    episodes: int
    gap: float
    sd: float
    detectable: float
    detectable_600: float
    needed: int


class Plan(Frozen):
    """Cells in the order of a table, then the unweighted mean over them, which a board ranks by.

    dense: of the cells whose heads were scored on all possible queries, if they are compared by it.
    """

    a: str
    b: str
    goal: Goal
    cells: tuple[Needed, ...]
    overall: Needed
    dense: tuple[Needed, ...]


def plan(a: str, b: str, goal: Goal, texts: Sequence[str] = (), board: Path | None = None) -> Plan:
    """The plan for two entries: results folders, or names on the board.

    texts: tasks to go by, all when empty; transductive cells count only where no others do. Raises
    UsageError for an entry that is not one, and for entries without a cell whose episodes can be
    paired; ValidationFailed for broken results.
    """
    goal.require_possible()
    both = shared(a, b, texts, board, few_shot=True)
    both = [each for each in both if not each.column.transductive] or both
    pairs = [each.scored() for each in both]
    dense = [pair for pair in (each.dense() for each in both) if pair is not None]
    found = tuple(line(pair, goal) for pair in pairs)
    return Plan(
        a=a,
        b=b,
        goal=goal,
        cells=found,
        overall=overall(found, pairs, goal),
        dense=tuple(line(pair, goal) for pair in dense),
    )


def line(pair: Pair, goal: Goal) -> Needed:
    gaps = pair.gaps
    sd = float(gaps.std(ddof=1))
    return Needed(
        task=pair.task,
        episodes=gaps.size,
        gap=float(gaps.mean()),
        sd=sd,
        detectable=detectable(sd, gaps.size, goal),
        detectable_600=detectable(sd, OFFICIAL, goal),
        needed=episodes_needed(sd, goal),
    )


def overall(found: Sequence[Needed], pairs: Sequence[Pair], goal: Goal) -> Needed:
    """Of the mean over cells, each with as many episodes."""
    draws = [pair.draws for pair in pairs]
    now = statistics.paired([pair.a for pair in pairs], [pair.b for pair in pairs], draws)
    sd = statistics.overall_sd([pair.gaps for pair in pairs], draws)
    return Needed(
        task=f"overall, {len(found)} cell{'s' if len(found) > 1 else ''}",
        episodes=min(cell.episodes for cell in found),
        gap=now.gap,
        sd=sd,
        detectable=standard_errors(goal) * now.se,
        detectable_600=detectable(sd, OFFICIAL, goal),
        needed=episodes_needed(sd, goal),
    )
