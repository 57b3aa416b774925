"""Which row is the matched-compute control of another."""

from collections.abc import Sequence
from dataclasses import replace

from support import fakes
from support.methods import facts, make_rows, outcomes, random_init, run

from leaderboard.methods.board import build_method_board
from leaderboard.methods.controls import (
    Match,
    list_inner_controls,
    match_controls,
    select_seeds,
)
from leaderboard.methods.gains import compute_gain
from leaderboard.methods.record import ControlKind
from leaderboard.ranking.tiers import Ranking
from leaderboard.tables import BoardTable, Row

META = {"loader": "episodes"}


def missing(row: Row, candidates: Sequence[Row], kind: ControlKind = "normal") -> str:
    """The reason why a row has no control of this kind."""
    reason = match_controls(row, candidates)[kind]
    assert isinstance(reason, str)
    return reason


def find_control(row: Row, candidates: Sequence[Row], kind: ControlKind = "normal") -> Row:
    match = match_controls(row, candidates)[kind]
    assert isinstance(match, Match)
    assert not match.is_paired or list_seeds(match.row) == list_seeds(match.control)
    return match.control


def list_seeds(row: Row) -> list[int]:
    return [network.seed for network in row.networks]


def test_an_entry_is_a_row_with_its_seeds() -> None:
    (row,) = make_rows([facts("swr+lw", seed) for seed in (4, 0, 1)])
    assert list_seeds(row) == [0, 1, 4]
    part = select_seeds(row, [1, 4])
    assert (part.name, list_seeds(part)) == ("0", [1, 4])


def test_entries_of_unknown_training_are_left_out_with_the_reason() -> None:
    of = {"whole": facts("llf"), "old": fakes.facts(), "timm": fakes.facts(source="timm")}
    rows = {name: run(name, made, a=[0.5]) for name, made in of.items()}
    board = build_method_board(BoardTable("b", ranking=Ranking(("a",)), rows=rows), "", rows)
    assert [row.name for row in board.rows] == ["whole"]
    assert board.left_out["old"].startswith("its results have no recipe and cost")
    assert "not pretrained by fsbench" in board.left_out["timm"]


def test_only_a_row_that_the_board_names_is_a_control() -> None:
    """Made-up entries of plain training neither take the place of a control nor delete it."""
    copy = facts().model_copy(update={"weights_hash": "f" * 64})
    plain, forged, row = make_rows(facts(), copy, facts("llf"))
    assert find_control(row, [plain]).name == plain.name
    assert find_control(row, [forged]).name == forged.name
    assert "the board names no normal" in missing(row, [])


def test_the_controls_of_an_entry_come_first_and_serve_no_other() -> None:
    llf, swr, plain, inner, other = make_rows(
        facts("llf"), facts("swr"), facts(), facts(), facts(lr=0.2)
    )
    llf = replace(llf, controls=(inner, other))
    assert [control.name for control in list_inner_controls(llf)] == ["control of 0"] * 2
    assert find_control(llf, [plain]).name == "control of 0"
    assert find_control(swr, [plain]).name == plain.name
    assert "no normal" in missing(swr, [])


def test_a_control_of_an_entry_counts_on_the_episodes_that_all_of_its_runs_have() -> None:
    (llf,) = make_rows([facts("llf", 0), facts("llf", 1)])
    zero, one = make_rows(facts(seed=0), facts(seed=1))
    zero = replace(zero, outcomes={"a": outcomes([0.5], index=[1])})
    llf = replace(llf, controls=(zero, one))
    match = match_controls(llf, [])["normal"]
    assert isinstance(match, Match)
    assert list_seeds(match.control) == [0, 1]
    gain = compute_gain(match, ["a"])
    assert gain
    assert (gain.gap, gain.n) == (0.0, 1)


def test_the_control_is_the_plain_row_under_equal_conditions() -> None:
    plain, once, row = make_rows(facts(), facts(schedule="single_cycle"), facts("llf"))
    rows = (plain, once, row)
    assert find_control(row, rows).name == plain.name
    assert find_control(row, rows, "other_schedule").name == once.name
    assert "no random init" in missing(row, rows, "random_init")
    assert missing(plain, rows) == "it is plain training itself"
    assert find_control(plain, rows, "other_schedule").name == once.name
    assert find_control(once, rows, "other_schedule").name == plain.name


def test_an_unmatched_run_is_never_a_control() -> None:
    for other in ({"lr": 0.2}, {"architecture": "x"}, {"source_fingerprint": "0" * 64}, META):
        rows = make_rows(facts(**other), facts("llf"))
        assert "no normal" in missing(rows[1], rows)
    method = make_rows(facts("swr"), facts("llf"))
    assert "no normal" in missing(method[1], method)


def test_equal_plans_that_took_other_steps_or_images_are_not_matched() -> None:
    for cost in ({"steps": 100}, {"samples": 9}):
        rows = make_rows(facts(**cost), facts("llf"))
        assert "not 120 over 7680" in missing(rows[1], rows)
    some = make_rows([facts(seed=0, steps=1), facts(seed=1)], [facts("llf"), facts("llf", 1)])
    assert list_seeds(find_control(some[1], some)) == [1]


def test_a_meta_learner_is_matched_with_batches_of_as_many_images() -> None:
    rows = make_rows(facts(), facts("maml", **META))
    assert find_control(rows[1], rows).name == rows[0].name


def test_gaps_are_taken_over_shared_seeds_only() -> None:
    rows = make_rows(
        [facts(seed=1), facts(seed=2)], [facts("llf", 0), facts("llf", 2)], facts("lw", 0)
    )
    assert list_seeds(find_control(rows[1], rows)) == [2]
    assert "other seeds only: 1, 2" in missing(rows[2], rows)


def test_schedules_without_counterpart_and_single_rounds_say_so() -> None:
    rows = make_rows(facts("llf", schedule="constant"))
    assert "no counterpart" in missing(rows[0], rows, "other_schedule")
    rows = make_rows(facts("llf", plan={"stages": [{}], "rounds": 1, "epochs": 12}))
    assert "nothing restarts" in missing(rows[0], rows, "other_schedule")


def test_random_inits_of_the_same_network_are_its_control() -> None:
    """The default width is not always part of the architecture's name."""
    both = [random_init(0), random_init(1, architecture="toy_resnet@8")]
    row, other, control = make_rows(facts("llf"), random_init(0, n_parameters=11), both)
    assert find_control(row, [other, control], "random_init") is control
    assert list_seeds(control) == [0, 1]
    assert match_controls(control, [other, control]) == {}
