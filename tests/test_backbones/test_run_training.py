"""A run's recipe and cost travel with its backbone, and only as its digest vouches for them."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import methods as fakes_methods

from fsbench import backbones
from fsbench.core.errors import CheckpointError


def edit(folder: Path, **changes: Any) -> None:
    """A record with all that a finished run states."""
    training = fakes_methods.training("llf", 2, steps=30)
    cost = training.model_dump(mode="json", exclude={"recipe", "steps"})
    record = json.loads((folder / "run.json").read_text())
    record |= {"recipe_digest": training.recipe_digest, "recipe_fields": training.recipe, **cost}
    (folder / "run.json").write_text(json.dumps(record | changes))


def test_the_facts_carry_recipe_and_cost(run_folder: Path) -> None:
    edit(run_folder)
    facts = backbones.load_backbone(f"run:{run_folder}").facts
    assert facts.training == fakes_methods.training("llf", 2, steps=30)
    assert backbones.load_backbone(f"run:{run_folder}", random_init=0).facts.training is None


@pytest.mark.parametrize("missing", ["flops", "device", "source_fingerprint", "peak_memory_bytes"])
def test_older_records_that_lack_some_of_it_have_none(run_folder: Path, missing: str) -> None:
    edit(run_folder, **{missing: None})
    assert backbones.load_backbone(f"run:{run_folder}").facts.training is None


def test_a_recipe_that_is_not_the_digests_is_damage(run_folder: Path) -> None:
    edit(run_folder, recipe_fields=fakes_methods.recipe("normal", 2))
    with pytest.raises(CheckpointError, match="recipe_fields have the digest"):
        backbones.load_backbone(f"run:{run_folder}")


def test_costs_that_cannot_be_are_damage(run_folder: Path) -> None:
    edit(run_folder, flops=-1)
    with pytest.raises(CheckpointError, match=r"damaged: flops"):
        backbones.load_backbone(f"run:{run_folder}")
