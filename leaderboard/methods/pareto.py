"""Rows that no other beats in accuracy and cost at once.

Floating-point operations are comparable on any machine, hours only on one kind of device; a random
init costs nothing on any.
"""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.charts.scatter import Point, pareto_front
from leaderboard.methods.record import Axis, Row


def fronts(rows: Sequence[Row]) -> dict[str, tuple[Axis, ...]]:
    """Row -> axes of cost on whose front it is; rows without an overall accuracy are on none."""
    devices = {row.costs.device for row in rows if row.costs.steps} - {None}
    by_device = [[r for r in rows if r.costs.device == d or not r.costs.steps] for d in devices]
    by_hours = set().union(*(best(own, "hours") for own in by_device or [list(rows)]))
    by_flops = best(rows, "flops")
    return {
        row.name: (
            *(("flops",) if row.name in by_flops else ()),
            *(("hours",) if row.name in by_hours else ()),
        )
        for row in rows
    }


def best(rows: Sequence[Row], axis: Axis) -> set[str]:
    """Names of the rows on the front of one axis."""
    return {
        point.label
        for point in pareto_front(
            [
                Point(row.name, getattr(row.costs, axis), row.overall.mean)
                for row in rows
                if row.overall is not None
            ]
        )
    }
