"""Which entries are one row, what it is called, and which row is its matched-compute control."""

from dataclasses import replace

from support import fakes
from support.methods import facts, groups, random_init, run

from leaderboard.methods.gains import index_controls, match_controls
from leaderboard.methods.runs import SeedGroup, flatten_fields, group_runs

META = {"loader": "episodes"}


def by_name(*groups_of_seeds: SeedGroup) -> dict[str, SeedGroup]:
    return {group.name: group for group in groups_of_seeds}


def test_seeds_of_one_recipe_are_a_row_in_the_order_of_seeds() -> None:
    (row,) = groups(facts("swr+lw", 2), facts("swr+lw", 0), facts("swr+lw", 1))
    assert row.name == row.method == "swr+lw"
    assert row.seeds == (0, 1, 2)
    assert [run.entry for run in row.runs] == ["1", "2", "0"]


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


def test_a_run_twice_and_entries_of_unknown_training_are_left_out_with_the_reason() -> None:
    same = facts("llf")
    all_facts = [
        run("twin", same, a=[0.5]),
        run("whole", same, a=[0.5], b=[0.5]),
        run("old", fakes.facts(), a=[0.5]),
        run("timm", fakes.facts(source="timm"), a=[0.5]),
    ]
    grouped, left_out = group_runs(all_facts)
    assert [member.entry for group in grouped for member in group.runs] == ["whole"]
    assert "same recipe and seed as whole" in left_out["twin"]
    assert "--overwrite" in left_out["old"]
    assert "not pretrained by fsbench" in left_out["timm"]


def test_a_control_cannot_be_taken_by_other_weights() -> None:
    """Neither claim counts, whatever the names and columns, unless one alone has a signed badge."""
    honest, forged = facts(), facts().model_copy(update={"weights_hash": "f" * 64})
    method = run("swr", facts("swr"), a=[0.5])
    claims = [run("normal", honest, a=[0.5]), run("a-normal", forged, a=[0.1], b=[0.1]), method]
    grouped, left_out = group_runs(claims)
    assert [group.name for group in grouped] == ["swr"]
    assert match_controls(grouped[0], index_controls(grouped))["normal"].group is None
    assert "a-normal with other weights, and no signed badge" in left_out["normal"]
    assert "normal with other weights, and no signed badge" in left_out["a-normal"]

    grouped, left_out = group_runs(claims, trusted={"normal"})
    assert [member.entry for group in grouped for member in group.runs] == ["normal", "swr"]
    assert left_out == {
        "a-normal": "the recipe and seed of normal with other weights, which has a signed badge"
    }
    assert not group_runs(claims, trusted={"normal", "a-normal"})[0][1:]


def test_a_row_and_its_control_are_of_one_owner() -> None:
    """A stranger's bad seeds join no row and take no control's place."""
    names = ("normal", "swr")
    runs = [
        replace(run(f"{owner}-{name}{seed}", facts(name, seed), a=[0.5]), owner=owner)
        for owner, seeds in (("alice", (0, 1)), ("bob", (2, 3, 4)))
        for name in names
        for seed in seeds
    ]
    guest = [replace(run("guest", facts("llf", seed)), owner="carol") for seed in (0, 1, 2, 3, 4)]
    grouped, left_out = group_runs([*runs, *guest])
    assert left_out == {}
    rows = {(group.method, group.owner): group for group in grouped}
    assert rows["normal", "alice"].seeds == (0, 1)
    assert rows["normal", "bob"].name == "normal (bob-normal2)"
    assert len({group.name for group in grouped}) == len(grouped) == 5
    index = index_controls(grouped)
    for owner in ("alice", "bob"):
        control = match_controls(rows["swr", owner], index)["normal"]
        assert (control.group, control.seeds) == (rows["normal", owner], rows["swr", owner].seeds)
    of_guest = rows["llf", "carol"]
    assert match_controls(of_guest, index)["normal"].group is rows["normal", "bob"]
    trusted = index_controls(grouped, {"alice-normal0", "alice-normal1"})
    assert match_controls(of_guest, trusted)["normal"].group is rows["normal", "alice"]


def test_the_control_is_the_plain_row_under_equal_conditions() -> None:
    plain, once, row = groups(facts(), facts(schedule="single_cycle"), facts("llf"))
    controls = match_controls(row, index_controls((plain, once, row)))
    assert controls["normal"].group is plain
    assert controls["other_schedule"].group is once
    assert controls["random_init"].group is None
    assert "no random init" in controls["random_init"].reason
    of_plain = match_controls(plain, index_controls((plain, once, row)))
    assert of_plain["normal"].group is None
    assert of_plain["other_schedule"].group is once
    back = match_controls(once, index_controls((plain, once, row)))
    assert back["other_schedule"].group is plain


def test_an_unmatched_run_is_never_a_control() -> None:
    for other in ({"lr": 0.2}, {"architecture": "x"}, {"source_fingerprint": "0" * 64}, META):
        rows = groups(facts(**other), facts("llf"))
        control = match_controls(rows[1], index_controls(rows))["normal"]
        assert control.group is None
        assert "no normal" in control.reason
    method = groups(facts("swr"), facts("llf"))
    assert match_controls(method[1], index_controls(method))["normal"].group is None


def test_equal_plans_that_took_other_steps_or_images_are_not_matched() -> None:
    for cost in ({"steps": 100}, {"samples": 9}):
        rows = groups(facts(**cost), facts("llf"))
        control = match_controls(rows[1], index_controls(rows))["normal"]
        assert control.group is None
        assert "not 120 over 7680" in control.reason
    some = groups(facts(seed=0, steps=1), facts(seed=1), facts("llf"), facts("llf", 1))
    assert match_controls(some[1], index_controls(some))["normal"].seeds == (1,)


def test_a_meta_learner_is_matched_with_batches_of_as_many_images() -> None:
    rows = groups(facts(), facts("maml", **META))
    assert match_controls(rows[1], index_controls(rows))["normal"].group is rows[0]


def test_gaps_are_taken_over_shared_seeds_only() -> None:
    rows = groups(facts(seed=1), facts(seed=2), facts("llf", 0), facts("llf", 2), facts("lw", 0))
    assert match_controls(rows[1], index_controls(rows))["normal"].seeds == (2,)
    control = match_controls(rows[2], index_controls(rows))["normal"]
    assert control.group is None
    assert "other seeds only: 1, 2" in control.reason


def test_schedules_without_counterpart_and_single_rounds_say_so() -> None:
    rows = groups(facts("llf", schedule="constant"))
    assert (
        "no counterpart" in match_controls(rows[0], index_controls(rows))["other_schedule"].reason
    )
    rows = groups(facts("llf", plan={"stages": [{}], "rounds": 1, "epochs": 12}))
    assert (
        "nothing restarts" in match_controls(rows[0], index_controls(rows))["other_schedule"].reason
    )


def test_random_inits_of_the_same_network_are_a_row_apart() -> None:
    """The default width is not always part of the architecture's name."""
    first, second = random_init(0), random_init(1, architecture="toy_resnet@8")
    rows = by_name(*groups(facts("llf"), first, second, random_init(0, n_parameters=11)))
    assert len(rows) == 3
    row = rows["llf"]
    control = match_controls(row, index_controls(list(rows.values())))["random_init"].group
    assert control is not None
    assert control.seeds == (0, 1)
    assert match_controls(control, index_controls(list(rows.values()))) == {}


def test_settings_stand_under_their_method() -> None:
    recipe = {"lr": 0.1, "methods": [{"name": "swr", "lam": 1}], "plan": {"stages": [{"start": 0}]}}
    assert flatten_fields(recipe) == {
        "lr": "0.1",
        "swr.name": "swr",
        "swr.lam": "1",
        "plan.stages": '[{"start": 0}]',
    }
