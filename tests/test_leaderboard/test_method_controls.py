"""What a row is called, and which row is its matched-compute control."""

from collections.abc import Sequence

from support import fakes
from support.methods import facts, groups, random_init, run

from leaderboard.methods.gains import match_controls
from leaderboard.methods.record import ControlKind
from leaderboard.methods.runs import SeedGroup, group_rows

META = {"loader": "episodes"}


def missing(row: SeedGroup, named: Sequence[SeedGroup], kind: ControlKind = "normal") -> str:
    """The reason why a row has no control of this kind."""
    reason = match_controls(row, named)[kind]
    assert isinstance(reason, str)
    return reason


def find_control(
    row: SeedGroup, named: Sequence[SeedGroup], kind: ControlKind = "normal"
) -> SeedGroup:
    control = match_controls(row, named)[kind]
    assert isinstance(control, SeedGroup)
    return control


def test_an_entry_is_a_row_with_its_seeds() -> None:
    (row,) = groups([facts("swr+lw", seed) for seed in (0, 1, 4)])
    assert row.name == row.method == "swr+lw"
    assert (row.entry, row.seeds) == ("0", (0, 1, 4))


def test_rows_of_one_method_are_called_by_what_they_differ_in() -> None:
    rows = groups(facts("swr", lam=0.1), facts("swr", lam=0.2), facts("llf"))
    assert [group.name for group in rows] == ["swr (swr.lam=0.1)", "swr (swr.lam=0.2)", "llf"]
    rates = groups(facts(lr=0.1), facts(lr=0.1, batch_size=8), facts(lr=0.3, batch_size=8))
    assert [group.name for group in rates] == [
        "normal (batch_size=64)",
        "normal (batch_size=8, lr=0.1)",
        "normal (lr=0.3)",
    ]
    seeds = groups(facts(seed=0, width=8), facts(seed=1, width=16))
    assert [group.name for group in seeds] == ["normal (width=8)", "normal (width=16)"]
    images = groups(facts(), facts(source_fingerprint="0" * 64))
    assert len({group.name for group in images}) == 2


def test_entries_of_one_recipe_are_rows_of_their_own() -> None:
    """Nobody joins the row of another by claiming its recipe, and a seed twice is no conflict."""
    rows = groups([facts("swr", 0), facts("swr", 1)], facts("swr", 2), facts("swr", 0))
    assert [group.seeds for group in rows] == [(0, 1), (2,), (0,)]
    assert [group.name for group in rows] == ["swr (0)", "swr (1)", "swr (2)"]


def test_entries_of_unknown_training_are_left_out_with_the_reason() -> None:
    rows = {
        "whole": [run("whole", facts("llf"), a=[0.5])],
        "old": [run("old", fakes.facts(), a=[0.5])],
        "timm": [run("timm", fakes.facts(source="timm"), a=[0.5])],
    }
    grouped, left_out = group_rows(rows, {})
    assert [group.entry for group in grouped] == ["whole"]
    assert left_out["old"].startswith("its results have no recipe and cost")
    assert "not pretrained by fsbench" in left_out["timm"]


def test_only_a_row_that_the_board_names_is_a_control() -> None:
    """Made-up entries of plain training neither take the place of a control nor delete it."""
    copy = facts().model_copy(update={"weights_hash": "f" * 64})
    plain, forged, row = groups(facts(), copy, facts("llf"))
    assert find_control(row, [plain]).entry == plain.entry
    assert find_control(row, [forged]).entry == forged.entry
    assert "the board names no normal" in missing(row, [])


def test_the_controls_of_an_entry_come_first_and_serve_no_other() -> None:
    rows = {name: [run(name, facts(name), a=[0.5])] for name in ("llf", "swr", "normal")}
    own_controls = {"llf": [run("llf control 0", facts(), a=[0.25])]}
    llf, swr, plain = group_rows(rows, own_controls)[0]
    assert find_control(llf, [plain]).name == "control of llf"
    assert find_control(swr, [plain]).entry == plain.entry
    assert "no normal" in missing(swr, [])


def test_the_control_is_the_plain_row_under_equal_conditions() -> None:
    plain, once, row = groups(facts(), facts(schedule="single_cycle"), facts("llf"))
    rows = (plain, once, row)
    assert find_control(row, rows).entry == plain.entry
    assert find_control(row, rows, "other_schedule").entry == once.entry
    assert "no random init" in missing(row, rows, "random_init")
    assert missing(plain, rows) == "it is plain training itself"
    assert find_control(plain, rows, "other_schedule").entry == once.entry
    assert find_control(once, rows, "other_schedule").entry == plain.entry


def test_an_unmatched_run_is_never_a_control() -> None:
    for other in ({"lr": 0.2}, {"architecture": "x"}, {"source_fingerprint": "0" * 64}, META):
        rows = groups(facts(**other), facts("llf"))
        assert "no normal" in missing(rows[1], rows)
    method = groups(facts("swr"), facts("llf"))
    assert "no normal" in missing(method[1], method)


def test_equal_plans_that_took_other_steps_or_images_are_not_matched() -> None:
    for cost in ({"steps": 100}, {"samples": 9}):
        rows = groups(facts(**cost), facts("llf"))
        assert "not 120 over 7680" in missing(rows[1], rows)
    some = groups([facts(seed=0, steps=1), facts(seed=1)], [facts("llf"), facts("llf", 1)])
    assert find_control(some[1], some).seeds == (1,)


def test_a_meta_learner_is_matched_with_batches_of_as_many_images() -> None:
    rows = groups(facts(), facts("maml", **META))
    assert find_control(rows[1], rows).entry == rows[0].entry


def test_gaps_are_taken_over_shared_seeds_only() -> None:
    rows = groups(
        [facts(seed=1), facts(seed=2)], [facts("llf", 0), facts("llf", 2)], facts("lw", 0)
    )
    assert find_control(rows[1], rows).seeds == (2,)
    assert "other seeds only: 1, 2" in missing(rows[2], rows)


def test_schedules_without_counterpart_and_single_rounds_say_so() -> None:
    rows = groups(facts("llf", schedule="constant"))
    assert "no counterpart" in missing(rows[0], rows, "other_schedule")
    rows = groups(facts("llf", plan={"stages": [{}], "rounds": 1, "epochs": 12}))
    assert "nothing restarts" in missing(rows[0], rows, "other_schedule")


def test_random_inits_of_the_same_network_are_its_control() -> None:
    """The default width is not always part of the architecture's name."""
    both = [random_init(0), random_init(1, architecture="toy_resnet@8")]
    row, other, control = groups(facts("llf"), random_init(0, n_parameters=11), both)
    assert find_control(row, [other, control], "random_init") is control
    assert control.seeds == (0, 1)
    assert match_controls(control, [other, control]) == {}
