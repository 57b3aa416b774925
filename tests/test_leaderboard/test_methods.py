"""The method board: matched controls, gains by hand, Holm over the rows of a column, its tables."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import fakes
from support.cli import CommandLine
from support.methods import (
    COSTS,
    average,
    build_board,
    facts,
    make_rows,
    name_controls,
    network,
    outcomes,
    random_init,
    run,
)

from fsbench.api.submit import submit
from fsbench.core import statistics
from fsbench.core.schema import BackboneFacts
from fsbench.results.verification import read_loaded
from leaderboard.controls import (
    ControlKind,
    Match,
    list_inner_controls,
    match_controls,
    select_seeds,
)
from leaderboard.figures import draw_figures
from leaderboard.methods import (
    NO_RUN,
    Gain,
    MethodBoard,
    MethodRow,
    build_from_table,
    build_method_board,
    compute_gain,
    compute_gains,
    split_conditions,
)
from leaderboard.ranking.seeds import compute_seed_interval
from leaderboard.ranking.tiers import Ranking
from leaderboard.render.methods import make_tables
from leaderboard.store import Board
from leaderboard.tables import BoardTable, Row, rank_tracks

Seeds = BackboneFacts | Sequence[BackboneFacts]
"""Facts of an entry, or of each of its seeds."""
META = {"loader": "episodes"}
ONCE = {"schedule": "single_cycle"}
SHORT = {"plan": {"stages": [{}], "rounds": 1, "epochs": 12}}
COLUMN = "folder-blobs:5w1s/linear@ibm 32px n_query=5"
PROBE = "x:probe 64px"
LLF, NORMAL = np.random.default_rng(0).uniform(size=(2, 2, 30))
"""Accuracies of two seeds and 30 episodes."""


NONE, NO_RANDOM = "the board names no normal", "no random init of"
MATCHES: tuple[tuple[Seeds, Seeds, ControlKind, str | list[int]], ...] = (
    *((facts(**other), facts("llf"), "normal", NONE)
      for other in ({"lr": 0.2}, {"architecture": "x"}, {"source_fingerprint": "0" * 64}, META)),
    (facts("swr"), facts("llf"), "normal", NONE),
    (facts(), facts(), "normal", "it is plain training itself"),
    (facts(steps=100), facts("llf"), "normal", "took 100 steps .* not 120 over 7680"),
    (facts(samples=9), facts("llf"), "normal", "over 9 images, not 120 over 7680"),
    ([facts(seed=1), facts(seed=2)], facts("lw"), "normal", "other seeds only: 1, 2"),
    (facts(), facts("llf"), "other_schedule", NONE),
    (facts(), facts("llf", schedule="constant"), "other_schedule", "no counterpart"),
    (facts(), facts("llf", **SHORT), "other_schedule", "nothing restarts"),
    (facts(), facts("llf"), "random_init", NO_RANDOM),
    (random_init(n_parameters=11), facts("llf"), "random_init", NO_RANDOM),
    (facts(), facts("llf"), "normal", [0]),
    (facts(**ONCE), facts("llf"), "other_schedule", [0]),
    (facts(**ONCE), facts(), "other_schedule", [0]),
    (facts(), facts(**ONCE), "other_schedule", [0]),
    (facts(), facts("maml", **META), "normal", [0]),  # batches of as many images
    ([facts(seed=1), facts(seed=2)], [facts("llf", 0), facts("llf", 2)], "normal", [2]),
    ([facts(steps=1), facts(seed=1)], [facts("llf", 0), facts("llf", 1)], "normal", [1]),
)  # fmt: skip
"""Control, row and kind, and the seeds that both have, or why the row has no such control."""


@pytest.mark.parametrize(("control", "row", "kind", "expected"), MATCHES)
def test_the_control_is_plain_training_under_equal_conditions_over_shared_seeds(
    control: Seeds, row: Seeds, kind: ControlKind, expected: str | list[int]
) -> None:
    other, candidate, compared = make_rows(facts("swr"), control, row)
    match = match_controls(compared, [other, candidate])[kind]
    if isinstance(expected, str):
        assert re.search(expected, str(match))
    else:
        assert match.is_paired
        assert match.control.name == candidate.name
        assert list_seeds(match.row) == list_seeds(match.control) == expected


def list_seeds(row: Row) -> list[int]:
    return [network.seed for network in row.networks]


def find_control(row: Row, *named: Row) -> str:
    """Return the name of the plain training that a row is compared with."""
    return match_controls(row, named)["normal"].control.name


def test_random_inits_of_the_same_network_are_its_control() -> None:
    """The default width is not always part of the architecture's name."""
    both = [random_init(0), random_init(1, architecture="toy_resnet@8")]
    row, other, control = make_rows(facts("llf"), random_init(0, n_parameters=11), both)
    match = match_controls(row, [other, control])["random_init"]
    assert match == Match(row, control, is_paired=False)
    assert match_controls(control, [other, control]) == {}
    (published,) = make_rows(row.facts.model_copy(update={"training": None}))
    assert match_controls(published, [other, control]) == {
        "random_init": Match(published, control, is_paired=False)
    }
    assert isinstance(match_controls(published, [published])["random_init"], str)


def test_controls_are_named_by_the_board_or_part_of_the_entry_and_serve_no_other() -> None:
    """Made-up entries of plain training neither take the place of a control nor delete it."""
    copy = facts().model_copy(update={"weights_hash": "f" * 64})
    llf, swr, plain, forged, other = make_rows(
        facts("llf"), facts("swr"), facts(), copy, facts(lr=0.2)
    )
    assert find_control(llf, plain) == plain.name
    assert find_control(llf, forged) == forged.name
    llf = replace(llf, controls=(forged, other))
    assert [control.name for control in list_inner_controls(llf)] == ["control of 0"] * 2
    assert find_control(llf, plain) == "control of 0"
    assert find_control(swr, plain) == plain.name


def test_a_control_of_an_entry_counts_on_the_episodes_that_all_of_its_runs_have() -> None:
    llf, zero, one = make_rows([facts("llf", 0), facts("llf", 1)], facts(seed=0), facts(seed=1))
    zero = replace(zero, outcomes={"a": outcomes([0.5], index=[1])})
    match = match_controls(replace(llf, controls=(zero, one)), [])["normal"]
    assert list_seeds(match.control) == [0, 1]
    gain = compute_gain(match, ["a"])
    assert (gain.gap, gain.n) == (0.0, 1)


def gain_over(control: Row, row: Row, *columns: str) -> Gain | None:
    """The gain over plain training, over the seeds that both have."""
    both = sorted({*list_seeds(row)} & {*list_seeds(control)})
    return compute_gain(Match(select_seeds(row, both), select_seeds(control, both)), columns)


def make_row(name: str, *values: Any) -> Row:
    """A row of a method with these accuracies in column a for each seed."""
    return average(name, [run(f"{name}{s}", facts(name, s), a=v) for s, v in enumerate(values)])


def test_one_seed_is_the_paired_comparison_over_episodes() -> None:
    """Seeds that only one side has do not enter."""
    expected = statistics.paired([LLF[0]], [NORMAL[0]])
    for ours in (make_row("llf", LLF[0]), make_row("llf", *LLF)):
        gain = gain_over(make_row("normal", NORMAL[0]), ours, "a")
        shown = (gain.gap, gain.ci95, gain.p, gain.n)
        assert shown == pytest.approx((expected.gap, expected.ci95, expected.p, 30))
        assert (gain.covers, gain.seeds, gain.by_seed) == ("episodes", (0,), (gain.gap,))


def test_two_seeds_on_both_sides_cover_seeds_paired_but_for_random_inits() -> None:
    """Initial weights of random inits are not shared, so both sides vary on their own."""
    ours, control = make_row("llf", *LLF), make_row("normal", *NORMAL)
    one, two = (
        average("random", [run(f"r{s}", random_init(s), a=NORMAL[s]) for s in range(n)])
        for n in (1, 2)
    )
    gaps = LLF - NORMAL
    se = float(gaps.mean(0).std(ddof=1) / np.sqrt(30))
    apart = [[[x] for x in side] for side in (LLF, NORMAL)]
    for match, sides, by_seed in (
        (Match(ours, control), [[[g] for g in gaps]], gaps.mean(axis=1)),
        (Match(ours, two, is_paired=False), apart, ()),
    ):
        gain = compute_gain(match, ["a"])
        expected = compute_seed_interval(gaps.mean(), sides, se, ["a"])
        assert (gain.gap, gain.ci95, gain.p) == pytest.approx((gaps.mean(), *expected))
        assert (gain.covers, gain.seeds) == ("seeds and episodes", (0, 1))
        assert gain.by_seed == pytest.approx(by_seed)
    gain = compute_gain(Match(ours, one, is_paired=False), ["a"])
    assert gain.covers == "episodes"
    assert gain.gap == pytest.approx(LLF.mean() - NORMAL[0].mean())


def test_only_shared_episodes_count_and_one_has_no_interval() -> None:
    ours, theirs, single, apart = (
        network(name, facts(name), {"a": outcomes(values, index=index)})
        for name, index, values in (
            ("llf", [1, 2, 3], [0.9, 0.5, 0.7]),
            ("normal", [2, 3, 4], [0.1, 0.2, 0.9]),
            ("normal", [3], [0.9]),
            ("normal", [7], [0.9]),
        )
    )
    gain = gain_over(theirs, ours, "a")
    assert (gain.gap, gain.n) == (pytest.approx((0.4 + 0.5) / 2), 2)
    gain = gain_over(single, ours, "a")
    assert (gain.gap, gain.ci95, gain.p) == (pytest.approx(-0.2), None, 1.0)
    for control, columns in ((apart, "a"), (theirs, "ab"), (theirs, "")):
        assert gain_over(control, ours, *columns) is None


def test_holm_runs_over_the_rows_of_one_column_and_control() -> None:
    draw = np.random.default_rng(1)
    means = {"normal": 0.5, "llf": 0.57, "swr": 0.55, "lw": 0.54}
    columns = {name: [draw.normal(mean, 0.1, 30) for _ in "ab"] for name, mean in means.items()}
    named = {n: run(n, facts(n), a=a, b=b) for n, (a, b) in columns.items()}
    plain = named.pop("normal")
    random = run("r", random_init(), a=columns["lw"][0], b=columns["lw"][1])
    controls: dict[str, Any] = {name: {"normal": Match(row, plain)} for name, row in named.items()}
    controls["swr"]["random_init"] = Match(named["swr"], random, is_paired=False)
    for part in (["a"], ["b"], ["a", "b"]):
        gains = compute_gains(controls, part, None)
        p = {name: gain.p for name, gain in gains["normal"].items()}
        assert p == {n: gain_over(plain, row, *part).p for n, row in named.items()}
        adjusted = [gain.p_holm for gain in gains["normal"].values()]
        assert adjusted == statistics.holm([*p.values()])
        ((name, gain),) = gains["random_init"].items()
        assert (name, gain.p_holm) == ("swr", gain.p)
        assert "other_schedule" not in gains


def test_in_domain_gains_are_paired_by_seed_and_tested_from_two_seeds_on() -> None:
    """`fc` lacks one accuracy; two equal gaps, as of `seal`, are no evidence."""
    accuracies = {
        "normal": (0.20, 0.21, 0.22), "swr": (0.22, 0.25, 0.25), "l2": (0.21, 0.22, 0.22),
        "lw": (0.5,), "seal": (0.26, 0.27), "fc": (0.3, None),
    }  # fmt: skip
    runs = [
        run(f"{method}{seed}", backbone, **{PROBE: [0.5, 0.25]})
        for method, by_seed in accuracies.items()
        for seed, accuracy in enumerate(by_seed)
        for backbone in [facts(method, seed).model_copy(update={"source_accuracy": accuracy})]
    ]
    board = build_board([PROBE], runs)
    assert [row.name for row in board.rows if row.source_accuracy is None] == ["fc"]
    gains = {row.name: row.source_gain for row in board.rows if row.source_gain}
    assert gains.keys() == {"swr", "l2", "lw", "seal"}
    for name, gaps in (("swr", (0.02, 0.04, 0.03)), ("l2", (0.01, 0.01, 0.0))):
        expected, gain = statistics.paired_by_seed(gaps), gains[name]
        shown = (gain.gap, gain.ci95, gain.p)
        assert shown == pytest.approx((expected.gap, expected.ci95, expected.p))
    # the family has the rows with several seeds
    adjusted = [gains[name].p_holm for name in ("swr", "l2")]
    assert adjusted == pytest.approx([3 * gains["swr"].p, 2 * gains["l2"].p])
    assert (gains["lw"].ci95, gains["lw"].p_holm, gains["seal"].p_holm) == (None, 1.0, 1.0)
    in_domain = {row[1]: row[-2] for row in make_tables(board)[0].rows}
    assert in_domain["swr"] == "24.00 (+3.00 ± 2.48)"
    assert (in_domain["lw"], in_domain["normal"]) == ("50.00 (+30.00)", "21.00")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """normal and llf with two seeds each, a composition with one, a random init, an old run.

    The board names normal and the random init as controls.
    """
    root = tmp_path_factory.mktemp("methods")
    facts_of_runs = [facts(name, seed) for name in ("normal", "llf") for seed in (0, 1)]
    facts_of_runs += [
        facts("swr+weight_compander", flops=2 * 10**12),
        random_init(),
        fakes.facts("old"),
    ]
    accuracy = {"toy/normal": 0.5, "toy/llf": 0.8, "toy/swr+weight_compander": 0.52}
    for facts_of_run in facts_of_runs:
        name = facts_of_run.ref.removeprefix("run:runs/")
        right = accuracy.get(facts_of_run.recipe or "", 0.3)
        fakes.write(root / "results", right, name=name, backbone=facts_of_run)
    submitted = submit(root / "results", root / "board", fakes.DECLARATION)
    name_controls(root / "board", submitted)
    return root / "board"


def rows_by_method(method_board: MethodBoard) -> dict[str, MethodRow]:
    return {row.method: row for row in method_board.rows}


def test_json_is_the_record_and_its_gain_is_that_of_the_outcomes(
    board: Path, tmp_path: Path, cli: CommandLine
) -> None:
    figures = tmp_path / "figures"
    shown = cli("leaderboard", "methods", "--board", board, "--json", "--figures", figures)
    (path,) = figures.glob("*-gains.svg")
    assert f"wrote {path}" in shown.err
    (data,) = json.loads(shown.out)
    method_board = MethodBoard.model_validate(data)
    assert method_board.columns == (COLUMN,)
    methods = [row.method for row in method_board.rows]
    assert methods[:3] == ["llf", "swr+weight_compander", "normal"]
    values: dict[str, list[Any]] = {}
    for loaded in read_loaded(board):
        values.setdefault(loaded.result.backbone.recipe or "", []).append(loaded.records.accuracy)
    llf, plain = np.mean(values["toy/llf"]), np.mean(values["toy/normal"])
    rows = rows_by_method(method_board)
    row, one = rows["llf"], rows["swr+weight_compander"].overall
    assert row.name.startswith("entry-llf")
    assert (row.seeds, row.overall.mean) == ((0, 1), pytest.approx(llf))
    gain = row.scores[COLUMN].gains["normal"]
    assert (gain.gap, gain.covers) == (pytest.approx(llf - plain), "seeds and episodes")
    assert row.controls["normal"] == rows["normal"].name
    assert (one.gains["normal"].covers, one.gains["normal"].seeds) == ("episodes", (0,))
    assert one.variance_seeds is one.ci95_seeds is None
    assert one.gains["random_init"].gap > 0
    old = rows["published weights"]
    assert (old.name, [*old.controls], old.costs) == ("entry-old", ["random_init"], {})
    assert old.overall.gains["random_init"].covers == "episodes"
    assert method_board.left_out == {}
    assert row.costs == {name: COSTS[name] for name in row.costs}
    assert row.costs["samples"] == 7680
    assert rows["random init"].costs == {}


def test_tables_say_why_there_is_no_control(board: Path, cli: CommandLine) -> None:
    shown = cli("leaderboard", "methods", "--board", board, "--format", "md").out
    for text in (
        *("swr+weight\\_compander", "over normal", "over random init", "folder-blobs"),
        "published weights",
        "equal compute: none; below: none. 1 ",  # two seeds are too few
    ):
        assert text in shown
    assert "other schedule |" not in shown, "no row has such a control here"
    assert shown.count("| entry-llf") == 2, "in two tables"


def test_entries_of_unknown_training_without_random_weights_are_left_out() -> None:
    of = {"whole": facts("llf"), "old": fakes.facts(), "timm": fakes.facts(source="timm")}
    rows = {name: run(name, made, a=[0.5]) for name, made in of.items()}
    table = BoardTable("b", ranking=Ranking(("a",)), rows=rows)
    board = build_method_board(table, "", rows)
    assert [row.name for row in board.rows] == ["whole"]
    assert board.left_out == dict.fromkeys(("old", "timm"), NO_RUN)
    (shown,) = make_tables(build_method_board(table, "", ["old", "timm"]))
    assert shown.rows == ()
    assert "fsbench pretrain" in shown.note
    assert "Left out, old, timm:" in shown.note


def test_the_order_of_entries_does_not_matter_and_ties_stand_together() -> None:
    a, b, c = np.random.default_rng(0).uniform(size=(3, 20))
    accuracies = {"normal": a, "llf": b, "swr": c, "lw": a}
    runs = [run(name, facts(name), **{PROBE: values}) for name, values in accuracies.items()]
    board = build_board([PROBE], runs)
    assert board == build_board([PROBE], runs[::-1])
    gain = rows_by_method(board)["lw"].scores[PROBE].gains["normal"]
    assert (gain.gap, gain.p, gain.p_holm) == (0.0, 1.0, 1.0)


def test_a_row_that_lacks_a_column_comes_last_without_overall() -> None:
    columns = [PROBE, "y:probe 64px"]
    full = dict(zip(columns, ([0.1, 0.2, 0.3], [0.4, 0.2, 0.0]), strict=True))
    high = run("b", facts("llf"), **{PROBE: [0.9, 0.8, 1.0]})
    board = build_board(columns, [run("a", facts(), **full), high, run("c", facts("lw"), **full)])
    row = board.rows[-1]
    assert (row.name, row.overall, list(row.scores)) == ("llf", None, [PROBE])
    assert row.scores[PROBE].gains["normal"].gap == pytest.approx(0.7)
    overall = rows_by_method(board)["lw"].overall
    values = list(map(np.array, full.values()))
    expected = statistics.paired(values, [np.zeros(3)] * 2, columns)
    assert (overall.mean, overall.ci95, overall.n) == pytest.approx((0.2, expected.ci95, 6))
    gains, targets = make_tables(board)
    assert gains.rows[-1][4] == "-"
    assert targets.rows[-1] == ("◦ llf", "90.00 (+70.00)", "-")


def test_plain_training_stands_beside_itself_under_the_other_schedule() -> None:
    backbones = {"a": facts(), "b": facts(**ONCE), "c": facts("llf")}
    accuracies = {"a": [0.5, 0.3], "b": [0.2, 0.2], "c": [0.6, 0.6]}
    runs = [run(name, backbones[name], **{PROBE: of}) for name, of in accuracies.items()]
    board = build_board([PROBE], runs)
    gaps = {
        row.name: {kind: gain.gap for kind, gain in row.scores[PROBE].gains.items()}
        for row in board.rows
    }
    assert gaps["llf"] == pytest.approx({"normal": 0.2, "other_schedule": 0.4})
    assert gaps["a"] == pytest.approx({"other_schedule": 0.2})
    assert gaps["b"] == pytest.approx({"other_schedule": -0.2})
    table = make_tables(board)[0]
    assert table.columns[6:8] == ("over normal", "over normal, other schedule")
    assert [row[:3] for row in table.rows if row[6] == "-"] == [
        ("◦ a", "normal", "3 rounds x 4 epochs, cosine"),
        ("◦ b", "normal", "3 rounds x 4 epochs, single_cycle"),
    ]


SEARCHED = {"lr": 0.05, "weight_decay": 0.01, "label_smoothing": 0.1}
TUNED_RUNS: dict[str, tuple[BackboneFacts, list[float]]] = {
    "normal": (facts(), [0.5, 0.3]),
    "tuned": (facts(**SEARCHED), [0.6, 0.4]),
    "untuned": (facts(lr=7.0), [0.1, 0.1]),
    "llf": (facts("llf"), [0.6, 0.5]),
    "swr": (facts("swr", **SEARCHED), [0.4, 0.4]),
    "seal": (facts("seal", schedule="step"), [0.9, 0.9]),
    "lw": (facts("lw", steps=100), [0.9, 0.9]),
}  # fmt: skip
"""Facts and accuracies of entries; a stranger trained swr with the tuned settings."""


def build_tuned_board(*names: str, tuned: Sequence[str] = ("tuned",)) -> MethodBoard:
    """The board of some of these runs by name; plain training is named as controls."""
    rows = {name: run(name, one, **{PROBE: of}) for name, (one, of) in TUNED_RUNS.items()}
    rows = {name: rows[name] for name in names}
    plain = tuple(n for n in names if TUNED_RUNS[n][0].training.plain and n != "untuned")
    table = BoardTable("b", ranking=Ranking((PROBE,)), rows=rows, controls=plain)
    return build_method_board(replace(table, tuned=tuple(tuned)), "", rows)


def list_gaps(board: MethodBoard) -> dict[str, dict[str, float]]:
    """The gains over plain training, tuned or not, by row and kind, in points."""
    return {
        row.name: {kind: round(100 * gain.gap, 6) for kind, gain in row.overall.gains.items()}
        for row in board.rows
    }


def test_gains_are_also_over_tuned_plain_training_that_the_board_names() -> None:
    """What others submit has no part: swr has the settings of `tuned`, `untuned` is no control."""
    board = build_tuned_board(*TUNED_RUNS)
    assert list_gaps(board) == {
        "seal": {}, "lw": {}, "normal": {}, "untuned": {}, "tuned": {"normal": 10.0},
        "llf": {"normal": 15.0, "tuned": 5.0}, "swr": {"normal": -10.0, "tuned": -10.0},
    }  # fmt: skip
    rows = {row.name: row for row in board.rows}
    methods = [rows[name].method for name in ("normal", "tuned", "untuned", "llf")]
    assert methods == ["normal", "normal (tuned)", "normal", "llf"]
    ours, other = (rows[name].overall.gains["tuned"] for name in ("llf", "swr"))
    assert [ours.p_holm, other.p_holm] == statistics.holm([ours.p, other.p])
    table, _ = make_tables(board)
    assert table.columns[6:8] == ("over normal", "over normal (tuned)")
    shown = {row[0]: row[6:8] for row in table.rows}
    assert shown["◦ llf"][1].startswith("+5.00")
    assert shown["◦ tuned"][1] == shown["◦ normal"][0] == "-"
    assert "Over normal (tuned), seal: one control equal but for lr, weight_decay" in table.note
    assert "Over normal (tuned), lw: tuned took 120 steps" in table.note
    assert "itself" not in table.note
    assert "Significantly above normal (tuned): none; below: none. 0 of 3" in table.lead[0]
    (axes,) = draw_figures(board)["gains_tuned"].axes
    assert {"+5.00", "-10.00"} <= {text.get_text() for text in axes.texts}


def test_the_board_file_names_the_tuned_control(board: Path) -> None:
    file, entries = Board.open(board).file, Board.open(board).entries()
    normal = next(name for name in file.controls if "normal" in name)
    (table,) = rank_tracks(file.model_copy(update={"tuned": (normal,)}), entries)
    (made,) = build_from_table(table)
    rows = rows_by_method(made)
    assert rows["llf"].controls["tuned"] == rows["normal"].name == normal


def test_the_tuned_control_may_be_the_recipe_itself_and_is_never_guessed() -> None:
    gaps = list_gaps(build_tuned_board("normal", "llf", tuned=["normal"]))
    assert gaps == {"normal": {}, "llf": {"normal": 15.0, "tuned": 15.0}}
    two = build_tuned_board("normal", "tuned", "llf", tuned=["normal", "tuned"])
    assert list_gaps(two)["llf"] == {"normal": 15.0}
    assert "names normal, tuned" in rows_by_method(two)["llf"].missing["tuned"]
    without = build_tuned_board("normal", "tuned", "llf", tuned=[])
    assert list_gaps(without)["llf"] == {"normal": 15.0}
    assert "tuned" not in rows_by_method(without)["llf"].missing
    assert "source_gain_tuned" not in without.model_dump_json()
    assert make_tables(without)[0].columns[6:8] == ("over normal", "in-domain")


def test_every_network_and_part_of_a_source_has_a_table_and_random_ones_join_theirs() -> None:
    run, few = facts("normal"), facts("normal", source_subset={"classes": 2, "images_per_class": 5})
    other = run.model_copy(update={"architecture": "fsbench/other@8"})
    random = other.model_copy(
        update={"architecture": "fsbench/other@16", "training": None, "random_init": 0}
    )
    untrained = other.model_copy(update={"architecture": "timm/resnet18", "training": None})
    backbones = {"a": run, "b": other, "c": random, "d": untrained}
    ours = run.architecture.partition("@")[0]
    expected = {"fsbench/other": ["b", "c"], ours: ["a"]}
    expected[min(expected)].append("d")  # no network of its own
    assert split_conditions(backbones) == expected
    assert split_conditions({name: backbones[name] for name in "cd"}) == {"": ["c", "d"]}
    before = run.model_copy(update={"training": None, "random_init": 0})
    assert split_conditions({"a": run, "e": few, "r": before}) == {
        "": ["a", "r"],
        "2 classes x 5 images": ["e", "r"],
    }
