"""Round 0 shared: a method that claims a plain round 0 has it, and its branch has the same bits."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.pretrain import equal, killed_at, lines, source, tiny, weights

from fsbench.core.errors import UsageError
from pretrain import METHODS
from pretrain.recipes.registry import compose_methods, control_recipe
from pretrain.training import checkpoint, first_round
from pretrain.training.loop import train_recipe

CLAIMING = [name for name, method in METHODS.items() if method.PLAIN_ROUND_0]
ACTING = [name for name in METHODS.names() if name not in CLAIMING]
OF_THE_MACHINE = ("seconds", "peak_memory_bytes", "shared_rounds")


def shared(recipe_of: str, folder: Path) -> Path:
    return first_round.train_first_round(
        first_round.shared_recipe(tiny(recipe_of)), source(), folder
    )


def record(run: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((run / "run.json").read_text())
    return {name: value for name, value in facts.items() if name not in OF_THE_MACHINE}


@pytest.mark.parametrize("name", CLAIMING)
def test_round_0_is_that_of_normal_to_the_bit(name: str, tmp_path: Path) -> None:
    first_round.train_first_round(tiny(name), source(), tmp_path / "own")
    shared(name, tmp_path / "shared")
    (branch, ours), (plain, theirs) = (
        checkpoint.load_checkpoint(tmp_path / run) or pytest.fail(run) for run in ("own", "shared")
    )
    state = [n for n in branch if not n.startswith("memory/")]
    assert equal({n: branch[n] for n in state}, plain)
    assert lines(tmp_path / "own", "rewrites.jsonl") == []
    for part in ("clock", "touched", "frozen_modules", "accuracy"):
        assert ours[part] == theirs[part]
    assert ours["cost"]["flops"] == theirs["cost"]["flops"]


@pytest.mark.parametrize("name", CLAIMING)
def test_a_branch_ends_with_the_bits_of_a_whole_run(name: str, tmp_path: Path) -> None:
    recipe = tiny(name)
    train_recipe(recipe, source(), tmp_path / "whole")
    trunk = shared(name, tmp_path / "trunk")
    first_round.start_from_first_round(recipe, source(), trunk, tmp_path / "branch")
    assert checkpoint.load_checkpoint(tmp_path / "branch") is not None
    train_recipe(recipe, source(), tmp_path / "branch")
    assert equal(weights(tmp_path / "branch"), weights(tmp_path / "whole"))
    for log in ("log.jsonl", "rewrites.jsonl"):
        assert lines(tmp_path / "branch", log) == lines(tmp_path / "whole", log)
    assert record(tmp_path / "branch") == record(tmp_path / "whole")


@pytest.mark.parametrize("name", ACTING)
def test_what_acts_in_round_0_is_trained_whole(name: str) -> None:
    assert not first_round.can_share_first_round(tiny(name))
    with pytest.raises(UsageError, match="cannot share round 0"):
        first_round.shared_recipe(tiny(name))


def test_one_acting_method_among_several_is_enough() -> None:
    assert not first_round.can_share_first_round(compose_methods(tiny("seal"), "seal+swr"))
    assert first_round.can_share_first_round(compose_methods(tiny("seal"), "seal+welsr"))
    assert not first_round.can_share_first_round(tiny("normal", "plan.rounds=1"))


def test_a_branch_says_where_its_round_came_from(tmp_path: Path) -> None:
    recipe, trunk = tiny("llf"), shared("llf", tmp_path / "trunk")
    first_round.start_from_first_round(recipe, source(), trunk, tmp_path / "branch")
    identity = json.loads((tmp_path / "branch" / "recipe.json").read_text())
    assert identity["recipe_digest"] == recipe.digest()
    train_recipe(recipe, source(), tmp_path / "branch")
    facts = json.loads((tmp_path / "branch" / "run.json").read_text())
    assert facts["recipe_digest"] == recipe.digest()
    (origin,) = facts["shared_rounds"]
    assert origin["round"] == 0
    assert origin["recipe_digest"] == control_recipe(recipe).digest()
    assert origin["checkpoint_sha256"] == checkpoint.file_digest(next(trunk.glob("*.safetensors")))
    train_recipe(recipe, source(), tmp_path / "whole")
    assert "shared_rounds" not in json.loads((tmp_path / "whole" / "run.json").read_text())


def test_a_run_that_has_started_is_let_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, trunk = tiny("llf"), shared("llf", tmp_path / "trunk")
    killed_at(2, recipe, tmp_path / "run", monkeypatch)
    before = (tmp_path / "run" / checkpoint.SIDECAR).read_bytes()
    first_round.start_from_first_round(recipe, source(), trunk, tmp_path / "run")
    assert (tmp_path / "run" / checkpoint.SIDECAR).read_bytes() == before


def test_a_copy_that_was_cut_short_leaves_no_claim(tmp_path: Path) -> None:
    recipe, trunk = tiny("llf"), shared("llf", tmp_path / "trunk")
    first_round.start_from_first_round(recipe, source(), trunk, tmp_path / "run")
    (tmp_path / "run" / checkpoint.SIDECAR).unlink()
    train_recipe(recipe, source(), tmp_path / "run")
    assert lines(tmp_path / "run", "shared.jsonl") == []
    assert "shared_rounds" not in json.loads((tmp_path / "run" / "run.json").read_text())


@pytest.mark.parametrize("change", ["lr=0.125", "seed=1", "plan.rounds=3"])
def test_the_round_of_another_control_is_refused(change: str, tmp_path: Path) -> None:
    trunk = shared("llf", tmp_path / "trunk")
    with pytest.raises(UsageError, match="holds another run"):
        first_round.start_from_first_round(tiny("llf", change), source(), trunk, tmp_path / "run")
    assert not (tmp_path / "run" / checkpoint.SIDECAR).exists()


def test_a_round_that_has_not_ended_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny("llf")
    killed_at(3, control_recipe(recipe), tmp_path / "trunk", monkeypatch)
    with pytest.raises(UsageError, match="not ended"):
        first_round.start_from_first_round(recipe, source(), tmp_path / "trunk", tmp_path / "run")
    first_round.train_first_round(control_recipe(recipe), source(), tmp_path / "trunk")
    first_round.start_from_first_round(recipe, source(), tmp_path / "trunk", tmp_path / "run")
    assert lines(tmp_path / "run") == lines(tmp_path / "trunk")
