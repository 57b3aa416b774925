"""An entry of several seeds is one row: its errors, and how tables and reports show it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit
from support import fakes, site
from support.methods import facts

from fsbench.api.leaderboard import RankedBoard
from fsbench.core.statistics import paired, score
from leaderboard.methods import build_from_table
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.seeds import SeedErrors, compute_seed_interval, estimate_sides
from leaderboard.ranking.tiers import APART, rank_entries
from leaderboard.record import BoardFile
from leaderboard.render import FORMATS
from leaderboard.render.frame import OVERALL, make_frame
from leaderboard.render.terminal import make_score_table
from leaderboard.site.data import build_page_data
from leaderboard.store import BoardEntry
from leaderboard.tables import BoardTable, rank_tracks

Ranked = tuple[Sequence[BoardEntry], BoardTable]


def rank(seeds: Mapping[str, int], *others: str) -> Ranked:
    """One linear table of methods with so many seeds, and of networks of unknown training.

    normal is the control.
    """
    backbones = {m: [facts(m, seed) for seed in range(n)] for m, n in seeds.items()}
    backbones |= {name: [fakes.facts(name)] for name in others}
    _, entries, (table,) = site.source(
        [*backbones], n_episodes=120, backbones=backbones, controls=["normal"]
    )
    return entries, table


@pytest.fixture(scope="module")
def ranked() -> Ranked:
    return rank({"normal": 3, "swr": 3, "seal": 2, "llf": 1})


@pytest.fixture
def table(ranked: Ranked) -> BoardTable:
    return ranked[1]


def members(table: BoardTable) -> dict[str, list[str]]:
    return {row: [e.name for e in seeds.values()] for row, seeds in table.seeds.items()}


def test_the_seeds_of_an_entry_are_one_row(table: BoardTable) -> None:
    assert members(table) == {
        "normal": ["normal seed 0", "normal seed 1", "normal seed 2"],
        "swr": ["swr seed 0", "swr seed 1", "swr seed 2"],
        "seal": ["seal seed 0", "seal seed 1"],
    }
    assert sorted(table.names) == ["llf", "normal", "seal", "swr"]
    rows = {row.name: row for row in table.ranking.entries}
    for name, seeds in table.seeds.items():
        assert list(seeds) == list(range(len(seeds)))
        assert rows[name].overall == pytest.approx(np.mean([s.overall for s in seeds.values()]))
        assert rows[name].covers == "seeds and episodes"
    assert rows["llf"].covers == "pooled seeds and episodes"


def test_seeds_that_lack_columns_of_the_table_are_no_part_of_the_row() -> None:
    entries, _ = rank({"normal": 3, "swr": 1})
    one = entries[0].seeds[0]
    results = [loaded for loaded in entries[0].loaded if loaded not in one.loaded[1:]]
    (table,) = rank_tracks(BoardFile(name="b"), [entries[1], site.pack("normal", results)])
    assert members(table) == {"normal": ["normal seed 1", "normal seed 2"]}
    assert not table.ranking.unranked


def seeds_of(seeds: int, spread: float, number: int, n: int = 200) -> Outcomes:
    rng = np.random.default_rng(number)
    base = np.random.default_rng(0).normal(0.5, 0.1, n)
    values = base + rng.normal(0, spread, (seeds, 1)) + rng.normal(0, 0.02, (seeds, n))
    parts = [Outcomes(np.arange(n), row, "d") for row in values]
    return parts[0] if seeds == 1 else Outcomes.average(parts)


def test_the_mean_over_seeds_counts_correct_queries() -> None:
    rows = np.array([[75, 0, 30], [75, 75, 0]], np.uint8)
    parts = [Outcomes(np.arange(3), row, "d", 75) for row in rows]
    mean = Outcomes.average(parts)
    assert mean.values.tolist() == [1.0, 0.5, 0.2]
    assert (mean.n_seeds, mean.out_of, mean.draws) == (2, 150, "d")


def test_the_interval_of_a_row_is_that_of_its_seeds() -> None:
    row = seeds_of(3, 0.05, 1)
    measured = SeedErrors({"a": [row]}).scores["a"]
    side = [[values] for values in row.by_seed]
    se = paired([row.values], [np.zeros(200)]).se
    assert measured.ci95 == compute_seed_interval(measured.mean, [side], se, ["d"]).ci95
    assert measured.ci95 > 1.5 * score(row.values).ci95


def test_below_three_rows_with_seeds_one_seed_covers_episodes() -> None:
    rows = {name: [seeds_of(3, 0.05, i)] for i, name in enumerate("ab")}
    alone = {"x": [seeds_of(1, 0, 8)], "y": [seeds_of(1, 0, 9)]}
    errors = SeedErrors({**rows, **alone})
    assert errors.pooled is None
    assert errors.find_coverage("x") == "episodes"
    plain = paired([alone["x"][0].values], [alone["y"][0].values])
    assert PairwiseGaps({**rows, **alone}).behind("x", ["y"])["y"] == pytest.approx(
        plain, abs=1e-12, nan_ok=True
    )
    both = PairwiseGaps(rows).behind("a", ["b"])["b"]
    assert both.freedom < 2.5, "the fewer seeds of both sides, less one"
    assert both.p > 0.05


def test_a_row_of_one_seed_takes_the_variance_of_runs_of_the_row_beside_it() -> None:
    rows = {"two": [seeds_of(2, 0.05, 0)], "one": [seeds_of(1, 0, 8)]}
    errors = SeedErrors(rows)
    part = errors.parts["two"]
    plain = paired([rows["two"][0].values], [rows["one"][0].values])
    gap = PairwiseGaps(rows).behind("two", ["one"])["one"]
    between, residual = 3 * part.variance, 3 * part.residual  # of the mean of two runs, and of one
    assert gap.se**2 == pytest.approx(between + plain.se**2 - residual)
    episodes = gap.se**2 - between
    squares = stdtrit(1, 0.975) ** 2 * between + stdtrit(199, 0.975) ** 2 * episodes
    assert gap.ci95 == pytest.approx(math.sqrt(squares))
    assert PairwiseGaps(rows).behind("one", ["two"])["two"].ci95 == pytest.approx(gap.ci95)


def test_pooled_rows_have_the_larger_variance_and_the_pooled_freedom() -> None:
    spreads = {"a": 0.001, "b": 0.2, "c": 0.02, "d": 0.02}
    rows = {name: [seeds_of(3, s, i)] for i, (name, s) in enumerate(spreads.items())}
    rows["one"] = [seeds_of(1, 0, 9)]
    errors = SeedErrors(rows)
    variances = np.array(
        [estimate_sides([errors.list_seeds(name)], [["d"]])[0].component for name in spreads]
    )
    total, squares = 2 * variances.sum(), 2 * (variances**2).sum()
    assert errors.pooled == pytest.approx((squares / total, total**2 / squares, total / 8))
    assert errors.pooled.freedom < 4.1, "row b spreads ten times as much as the others"
    parts = errors.parts
    assert parts["one"].variance == errors.pooled.variance
    assert parts["a"].variance == pytest.approx(errors.pooled.least / 3 + parts["a"].residual)
    assert parts["b"].variance > parts["a"].variance
    assert {part.freedom for part in parts.values()} == {errors.pooled.freedom}
    gap = PairwiseGaps(rows).behind("one", ["a"])["a"]
    assert gap.se > math.sqrt(errors.pooled.variance)
    assert gap.ci95 > 2.2 * gap.se


@pytest.mark.parametrize("several", [1, 2, 3])
def test_rows_of_one_seed_are_ranked_apart(several: int) -> None:
    """Neither kind of rows changes tiers, gaps or p of the other one, as long as none is pooled."""
    rows = {f"r{i}": {"c": seeds_of(3, 0.002, i)} for i in range(several)}
    single = {
        f"s{i}": {"c": replace(row, right=row.right + mean * row.out_of)}
        for i, mean in enumerate((0.3, 0.0, -0.2))
        for row in [seeds_of(1, 0, 10 + i)]
    }
    both, alone = rank_entries(rows | single, ["c"]), rank_entries(single, ["c"])
    assert both.tiers == rank_entries(rows, ["c"]).tiers
    apart = [(e.name, e.tier, e.reason) for tier in both.apart for e in tier]
    assert apart == [(f"s{i}", i + 1, APART) for i in range(3)]
    assert [(e.name, e.tier, e.reason) for e in alone.entries] == [(n, t, "") for n, t, _ in apart]
    assert not alone.apart
    assert both.entries[several].name == "s0", "below the rows of several seeds, although better"
    if several < 3:
        numbers = [[(e.behind, e.p) for tier in tiers for e in tier]
                   for tiers in (both.apart, alone.tiers)]  # fmt: skip
        assert numbers[0] == numbers[1]


def test_what_is_shown_of_rows_ranked_apart() -> None:
    entries, table = rank({"normal": 3, "swr": 3, "llf": 1, "fc": 1})
    assert {e.name for tier in table.ranking.apart for e in tier} == {"llf", "fc"}
    shown = make_score_table(make_frame(table))
    tiers = {row[1].removeprefix("◦ "): row[0] for row in shown.rows}
    assert tiers["llf"].startswith("◦")
    assert tiers["normal"].isdecimal()
    assert "of 2 ranked entries of several seeds" in shown.lead[0]
    assert shown.lead[1].startswith("◦ one pretraining seed: ranked apart")
    frame = RankedBoard((table,)).to_frame().groupby("entry").first()
    assert frame.reason["llf"] == APART
    assert frame.tier["llf"] >= 1
    page = build_page_data(BoardFile(name="b"), entries, [table])["tracks"][0]
    by_name = {row["name"]: row for row in page["entries"]}
    assert f"◦{by_name['llf']['tier']}" == tiers["llf"]
    assert by_name["llf"]["reason"] == APART
    best = RankedBoard((table,)).to_frame().groupby("entry").best.any()
    assert not best["llf"]
    assert best[["normal", "swr"]].any()


def test_the_method_board_has_the_intervals_of_the_table(table: BoardTable) -> None:
    (board,) = build_from_table(table)
    (swr,) = (row for row in board.rows if row.name == "swr")
    assert (swr.method, swr.seeds) == ("swr", (0, 1, 2))
    assert swr.controls["normal"] == "normal"
    measured = table.seed_errors.scores["swr"]
    assert measured.mean == pytest.approx(swr.overall.mean)
    assert measured.ci95 == pytest.approx(swr.overall.ci95_seeds)


def test_a_table_prints_the_seeds_below_their_row(table: BoardTable) -> None:
    closed, opened = (make_score_table(make_frame(table, seeds=seeds)) for seeds in (False, True))
    assert [row[1].removeprefix("◦ ") for row in closed.rows] == table.names
    names = [row[1].removeprefix("↳ ") for row in opened.rows]
    at = names.index("swr")
    assert names[at : at + 4] == ["swr", "swr seed 0", "swr seed 1", "swr seed 2"]
    assert opened.rows[at][2] == "3"
    assert opened.rows[at + 1][0] == ""
    assert any("pooled seed spread" in sentence for sentence in closed.lead)
    assert "| ↳ swr seed 1 |" in RankedBoard((table,)).to_markdown(seeds=True)


def test_the_page_carries_the_seeds(ranked: Ranked) -> None:
    entries, table = ranked
    page = build_page_data(BoardFile(name="b"), entries, [table])
    by_name = {row["name"]: row for row in page["tracks"][0]["entries"]}
    row = by_name["seal"]
    assert row["covers"] == "seeds and episodes"
    assert by_name["llf"]["seeds"] == []
    seeds = [(s["name"], s["seed"]) for s in row["seeds"]]
    assert seeds == [("seal seed 0", 0), ("seal seed 1", 1)]
    assert all(len(s["mean"]) == 4 for s in row["seeds"])
    facts = page["facts"]
    assert facts["seal"]["authors"] == "A. Author"
    assert facts["seal"]["digest"] == next(e.digest for e in entries if e.name == "seal")
    assert "weights_hash" not in facts["seal"]
    assert {"entry", "weights_hash"} <= facts["seal seed 0"].keys()
    assert not facts["seal seed 0"].keys() & facts["seal"].keys(), "what seeds share is there once"


def test_reports_carry_the_seeds_and_judge_no_recipe_of_one_seed() -> None:
    _, table = rank({"normal": 3, "swr": 3, "seal": 2, "llf": 1}, "vit", "poor")
    frame = make_frame(table, "normal seed 1")
    assert frame.control == "normal", "a seed names its row"
    overall = {name: frame.scores[name][OVERALL] for name in table.names}
    significant = {name for name, score in overall.items() if score.p < 0.05}
    marked = {name for name, score in overall.items() if score.mark}
    assert {"llf", "poor"} <= significant
    assert "poor" in marked
    assert "llf" not in marked
    for name in ("csv", "html", "latex", "md"):
        closed, opened = (FORMATS.load(name)([make_frame(table, seeds=s)]) for s in (False, True))
        assert ["swr seed 1" in text for text in (closed, opened)] == [False, True], name
