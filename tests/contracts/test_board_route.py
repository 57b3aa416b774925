"""How far a reader walks who follows the board of `fsbench leaderboard show` through the calls.

The board takes several forms on its way: entries, tables, a ranking, printed tables. Steps are the
functions that return one of them, in the order in which they are first called. A stop is a step in
another module than the one before; a return is a stop in a module where the reader was before; a
climb is a call of a step in a layer above its caller.
"""

import ast
import re
import sys
from itertools import groupby
from types import FrameType
from typing import Any, NamedTuple

import pytest
from support.imports import LAYERS, layer_package, modules, tree
from support.snapshot import BOARDS

from fsbench.cli import leaderboard

MOST_STOPS, MOST_RETURNS = 12, 3
"""Bounds of this route."""
FORM = re.compile(
    r"\b(Board|BoardFile|BoardEntry|BoardTable|RankedBoard|Ranking|Tiers|TextTable|Fit)\b"
)
ENDS = {("fsbench.cli.leaderboard", "show"), ("fsbench.cli.console", "show_tables")}


class Step(NamedTuple):
    """A function that returns a form of the board, and the module that calls it."""

    module: str
    function: str
    caller: str


def returns_form(module: str, function: str) -> bool:
    """Whether a function or method is annotated to return a form of the board."""
    scope: Any = tree(module)
    for name in function.split("."):
        nodes = [n for n in scope.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
        scope = next((node for node in nodes if node.name == name), None)
        if scope is None:
            return False
    annotation = getattr(scope, "returns", None)
    return annotation is not None and FORM.search(ast.unparse(annotation)) is not None


def follow_board() -> list[Step]:
    steps: dict[tuple[str, str], Step] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        key = (frame.f_globals.get("__name__", ""), frame.f_code.co_qualname)
        if event != "call" or key in steps or key[0] not in modules():
            return
        if key in ENDS or returns_form(*key):
            caller = frame.f_back.f_globals["__name__"] if frame.f_back else ""
            steps[key] = Step(*key, caller if caller in modules() else key[0])

    sys.setprofile(note)
    try:
        leaderboard.show(BOARDS["pilot"], False, False)
    finally:
        sys.setprofile(None)
    return list(steps.values())


def test_the_board_is_followed_in_few_stops_and_never_upwards(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = follow_board()
    assert {"rank_tracks", "rank_entries", "make_score_table"} <= {step.function for step in steps}
    visited = [module for module, _ in groupby(step.module for step in steps)]
    route = " -> ".join(visited)
    assert len(visited) <= MOST_STOPS, route
    assert len(visited) - len(set(visited)) <= MOST_RETURNS, route
    layers = [(LAYERS[layer_package(s.module)], LAYERS[layer_package(s.caller)], s) for s in steps]
    assert [step for called, calling, step in layers if called > calling] == []
    assert "tier" in capsys.readouterr().out
