"""How far a reader walks who follows one thing through the calls of a command.

It takes several forms on its way: the board of `fsbench leaderboard show` is entries, tables, a
ranking, printed tables. Steps are the functions that return one of them, in the order in which they
are first called. A stop is a step in another module than the one before; a return is a stop in a
module where the reader was before; a climb is a call of a step in a layer above its caller.
"""

import ast
import re
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from support.cli import call
from support.imports import LAYERS, layer_package, modules, tree
from support.snapshot import BOARDS

TOY = ("-m", "fsbench/toy_resnet", "--random-init", "0", "-t", "toy_tiles:2w1s", "--limit", "2")


DECORATOR = "fsbench.core.options"
"""Its function stands between a command and what the command calls."""


class Route(NamedTuple):
    """A command, the forms of what is followed, steps on its way, and the bounds of the walk."""

    command: tuple[str | Path, ...]
    forms: str
    passes: set[str]
    stops: int
    returns: int
    climbs: int = 0


ROUTES = {
    "board": Route(
        ("leaderboard", "show", "--board", BOARDS["pilot"]),
        "Board|BoardFile|BoardEntry|BoardTable|RankedBoard|Ranking|Tiers|TextTable|Fit",
        {"rank_tracks", "rank_entries", "make_score_table"},
        stops=12,
        returns=3,
    ),
    "request": Route(
        ("episodic", *TOY),
        "EvaluationOptions|EvaluationRequest|Evaluation|EpisodicSpec",
        {"read_request", "start_evaluations"},
        stops=7,
        returns=2,
        climbs=2,
    ),
    "recipe": Route(
        ("pretrain", "toy/lw", "--set", "plan.epochs=1"),
        "PretrainOptions|Recipe|Plan|Method|Run",
        {"load_recipe", "compose_methods"},
        stops=20,
        returns=5,
    ),
}


class Step(NamedTuple):
    """A function that returns a form, and the module that calls it."""

    module: str
    function: str
    caller: str


def returns_form(module: str, function: str, forms: re.Pattern[str]) -> bool:
    """Whether a function or method is annotated to return one of these forms."""
    scope: Any = tree(module)
    for name in function.split("."):
        nodes = [n for n in scope.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
        scope = next((node for node in nodes if node.name == name), None)
        if scope is None:
            return False
    annotation = getattr(scope, "returns", None)
    return annotation is not None and forms.search(ast.unparse(annotation)) is not None


def follow(run: Callable[[], object], forms: re.Pattern[str]) -> list[Step]:
    steps: dict[tuple[str, str], Step] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        key = (frame.f_globals.get("__name__", ""), frame.f_code.co_qualname)
        is_new = event == "call" and key not in steps and key[0] in modules()
        if is_new and returns_form(*key, forms):
            back = frame.f_back
            while back and back.f_globals.get("__name__") == DECORATOR:
                back = back.f_back
            caller = back.f_globals["__name__"] if back else ""
            steps[key] = Step(*key, caller if caller in modules() else key[0])

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return list(steps.values())


@pytest.mark.parametrize("name", ROUTES)
def test_a_thing_is_followed_in_few_stops(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    route = ROUTES[name]
    steps = follow(lambda: call(*route.command), re.compile(rf"\b({route.forms})\b"))
    assert route.passes <= {step.function for step in steps}
    visited = [module for module, _ in groupby(step.module for step in steps)]
    walk = " -> ".join(visited)
    assert len(visited) <= route.stops, walk
    assert len(visited) - len(set(visited)) <= route.returns, walk
    layers = [(LAYERS[layer_package(s.module)], LAYERS[layer_package(s.caller)], s) for s in steps]
    climbs = [step for called, calling, step in layers if called > calling]
    assert len(climbs) <= route.climbs, climbs
