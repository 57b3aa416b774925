"""Near copies: found by their answers, query by query; honest networks are not."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from support import fakes

from fsbench.core.records import EpisodeRecords
from fsbench.core.seeding import uniforms
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.results import assembly
from fsbench.results.entry import Loaded
from leaderboard.near_copies import NEAR, SAME, NetworkResult, find_suspicions, list_correlated
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.record import BoardFile

N = 512
"""So many episodes are screened before all are compared."""
SPEC = EpisodicSpec(episode=EpisodeSpec(k_shot=5), n_episodes=N)
FILE = BoardFile(name="board")
Answers = NDArray[np.bool_]


def answers(name: str, accuracy: float, shared: float = 0.8) -> Answers:
    """Right answers of a network; `shared` of the difficulty of a query is that of all networks."""
    shape = (N, 5, 15)
    hard = shared * uniforms(shape, "difficulty") + (1 - shared) * uniforms(shape, name, "own")
    return np.asarray(hard < np.quantile(hard, accuracy))


def row(name: str, right: Answers, entry: str = "", weights: str = "") -> NetworkResult:
    n = len(right)
    records = EpisodeRecords(np.arange(n), right, np.zeros(n, np.bool_), np.ones(n, np.bool_))
    facts = fakes.facts(weights or name)
    data = fakes.official("eurosat")
    result = assembly.build_result(facts, data, SPEC, records, False, fakes.provenance())
    return NetworkResult(entry or name, name, Loaded(Path("nowhere"), result, records))


@pytest.mark.parametrize("accuracy", [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("change", ["equal", "1 % flipped", "5 % flipped", "improved"])
def test_a_copy_is_flagged_on_both_sides(accuracy: float, change: str) -> None:
    original = answers("a", accuracy)
    draws = uniforms(original.shape, "forger")
    copy = {
        "equal": original,
        "1 % flipped": original ^ (draws < 0.01),
        "5 % flipped": original ^ (draws < 0.05),
        "improved": original | (draws < 0.03 / (1 - accuracy)),
    }[change]
    honest = row("c", answers("c", accuracy, 0.5))
    assert find_suspicions(FILE, [row("a", original), row("b", copy), honest]) == {
        "a": (f"{NEAR} b",),
        "b": (f"{NEAR} a",),
    }
    cleared = FILE.model_copy(update={"cleared": (("b", "a"),)})
    assert find_suspicions(cleared, [row("a", original), row("b", copy)]) == {}


@pytest.mark.parametrize("accuracy", [0.25, 0.4, 0.6, 0.8, 0.95])
def test_networks_that_find_the_same_queries_hard_are_not_flagged(accuracy: float) -> None:
    """Their answers correlate by .3 to .6, as those of most pairs of networks in the studies."""
    rows = [row(f"n{i}", answers(f"n{i}", accuracy, 0.7)) for i in range(6)]
    (one, other) = (r.loaded.records.correct.ravel() for r in rows[:2])  # type: ignore[union-attr]
    assert np.corrcoef(one, other)[0, 1] > 0.25
    assert find_suspicions(FILE, rows) == {}


def test_equal_weights_are_flagged_on_both_whatever_their_outcomes_and_many_are_counted() -> None:
    rows = [row(name, answers(name, 0.6), weights="a") for name in "abcd"]
    assert find_suspicions(FILE, rows[:2]) == {"a": (f"{SAME} b",), "b": (f"{SAME} a",)}
    assert find_suspicions(FILE, rows)["d"] == (f"{SAME} a and 2 more",)


def test_images_are_compared_at_once() -> None:
    """Every fourth is one that all get right, so that a part of them would show nothing."""
    index = np.arange(1024)
    right = (uniforms((1024,), "images") < 0.6) | (index % 4 == 0)
    outcomes = Outcomes(index, right.astype(np.uint8), "images")
    one, other = (SimpleNamespace(outcomes=outcomes, n_queries=1024, name=name) for name in "ab")
    [(correlation, pair)] = list_correlated([one, other])
    assert correlation == pytest.approx(1)
    assert pair == (one, other)
