"""Gains by hand: paired over shared episodes and seeds, Holm over the rows of a column."""

import numpy as np
import pytest
from support.methods import average, facts, network, outcomes, random_init, run

from fsbench.core import statistics
from leaderboard.methods.controls import Match, select_seeds
from leaderboard.methods.gains import compute_gain, compute_gains
from leaderboard.methods.record import Gain
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.seeds import compute_seed_interval
from leaderboard.tables import Row

DRAW = np.random.default_rng(0)
MEANS = {"normal": 0.5, "llf": 0.57, "swr": 0.55, "lw": 0.54}
VALUES = {name: DRAW.uniform(size=(2, 30)) for name in ("llf", "normal")}


def group(name: str, *runs: Row) -> Row:
    return average(name, runs)


def gain_over(control: Row, row: Row, *columns: str) -> Gain | None:
    """The gain over plain training, over the seeds that both have."""
    both = sorted({n.seed for n in row.networks} & {n.seed for n in control.networks})
    return compute_gain(Match(select_seeds(row, both), select_seeds(control, both)), columns)


def rows(seeds: int) -> tuple[Row, Row]:
    """llf and normal in one column a, with so many seeds each."""
    ours, theirs = (
        group(name, *(run(f"{name}{s}", facts(name, s), a=VALUES[name][s]) for s in range(seeds)))
        for name in ("llf", "normal")
    )
    return ours, theirs


def test_one_seed_is_the_paired_comparison_over_episodes() -> None:
    ours, control = rows(1)
    gain = gain_over(control, ours, "a")
    expected = statistics.paired([VALUES["llf"][0]], [VALUES["normal"][0]])
    assert gain is not None
    assert (gain.gap, gain.ci95, gain.p) == pytest.approx((expected.gap, expected.ci95, expected.p))
    assert (gain.n, gain.covers, gain.seeds) == (30, "episodes", (0,))


def test_two_seeds_on_both_sides_cover_seeds() -> None:
    ours, control = rows(2)
    gain = gain_over(control, ours, "a")
    gaps = VALUES["llf"] - VALUES["normal"]
    se = gaps.mean(0).std(ddof=1) / np.sqrt(30)
    expected = compute_seed_interval(gaps.mean(), [[[g] for g in gaps]], float(se), ["a"])
    assert gain is not None
    assert gain.gap == pytest.approx(gaps.mean())
    assert (gain.ci95, gain.p) == pytest.approx(tuple(expected))
    assert gain.covers == "seeds and episodes"
    assert gain.seeds == (0, 1)


def test_seeds_that_only_one_side_has_do_not_enter() -> None:
    ours, _ = rows(2)
    _, control = rows(1)
    gain = gain_over(control, ours, "a")
    assert gain is not None
    assert gain.gap == pytest.approx((VALUES["llf"][0] - VALUES["normal"][0]).mean())
    assert (gain.covers, gain.by_seed) == ("episodes", (gain.gap,))


def test_a_gap_is_the_mean_of_the_gaps_of_its_seeds() -> None:
    ours, control = rows(2)
    gain = gain_over(control, ours, "a")
    assert gain is not None
    assert gain.by_seed == pytest.approx((VALUES["llf"] - VALUES["normal"]).mean(axis=1))
    assert np.mean(gain.by_seed) == pytest.approx(gain.gap)


def test_random_inits_are_not_paired_by_seed() -> None:
    """Both sides vary on their own, and one random init leaves episodes only."""
    ours, _ = rows(2)
    random = [run(f"r{s}", random_init(s), a=VALUES["normal"][s]) for s in (0, 1)]
    gain = compute_gain(Match(ours, group("random init", *random), False), ["a"])
    a, b = VALUES["llf"], VALUES["normal"]
    se = (a.mean(0) - b.mean(0)).std(ddof=1) / np.sqrt(30)
    expected = compute_seed_interval(
        a.mean() - b.mean(), [[[x] for x in a], [[x] for x in b]], float(se), ["a"]
    )
    assert gain is not None
    assert gain.ci95 == pytest.approx(expected.ci95)
    assert gain.by_seed == ()
    one = compute_gain(Match(ours, group("random init", random[0]), False), ["a"])
    assert one is not None
    assert one.covers == "episodes"
    assert one.gap == pytest.approx(a.mean() - b[0].mean())


def test_only_shared_episodes_count() -> None:
    def one(name: str, index: list[int], values: list[float]) -> Row:
        columns: dict[str, Outcomes] = {"a": outcomes(values, index=index)}
        return network(name, facts(name), columns)

    ours = group("llf", one("llf", [1, 2, 3], [0.9, 0.5, 0.7]))
    theirs = group("normal", one("normal", [2, 3, 4], [0.1, 0.2, 0.9]))
    gain = gain_over(theirs, ours, "a")
    assert gain is not None
    assert gain.gap == pytest.approx((0.4 + 0.5) / 2)
    assert gain.n == 2
    none = group("normal", one("normal", [7], [0.9]))
    assert gain_over(none, ours, "a") is None


def test_overall_needs_every_column_on_both_sides() -> None:
    ours = group("llf", run("x", facts("llf"), a=[0.1, 0.2], b=[0.4, 0.6]))
    control = group("normal", run("y", facts(), a=[0.0, 0.0]))
    assert gain_over(control, ours, "a", "b") is None
    assert gain_over(control, ours, "a") is not None
    assert gain_over(control, ours) is None


def test_one_episode_has_a_gap_and_no_interval() -> None:
    ours = group("llf", run("x", facts("llf"), a=[0.5]))
    control = group("normal", run("y", facts(), a=[0.25]))
    gain = gain_over(control, ours, "a")
    assert gain is not None
    assert (gain.gap, gain.ci95, gain.p) == (0.25, None, 1.0)


def test_holm_runs_over_the_rows_of_one_column_and_control() -> None:
    draw = np.random.default_rng(1)
    columns = {name: [draw.normal(mean, 0.1, 30) for _ in "ab"] for name, mean in MEANS.items()}
    named = {n: group(n, run(n, facts(n), a=a, b=b)) for n, (a, b) in columns.items()}
    plain = named.pop("normal")
    random = group("random init", run("r", random_init(), a=columns["lw"][0], b=columns["lw"][1]))
    controls = {name: {"normal": Match(row, plain)} for name, row in named.items()}
    controls["swr"]["random_init"] = Match(named["swr"], random, is_paired=False)
    for part in (["a"], ["b"], ["a", "b"]):
        gains = compute_gains(controls, part, None)  # type: ignore[arg-type]
        p = {name: gain.p for name, gain in gains["normal"].items()}
        assert p.keys() == named.keys()
        alone = {n: gain_over(plain, row, *part) for n, row in named.items()}
        assert p == {name: gain.p for name, gain in alone.items() if gain}
        least, middle, most = sorted(p, key=lambda name: p[name])
        adjusted = {name: gain.p_holm for name, gain in gains["normal"].items()}
        assert adjusted[least] == pytest.approx(min(1, 3 * p[least]))
        assert adjusted[middle] == pytest.approx(min(1, max(3 * p[least], 2 * p[middle])))
        assert adjusted[most] == pytest.approx(max(adjusted[middle], p[most]))
        assert [(n, g.p_holm) for n, g in gains["random_init"].items()] == [
            ("swr", gains["random_init"]["swr"].p)
        ]
        assert "other_schedule" not in gains
