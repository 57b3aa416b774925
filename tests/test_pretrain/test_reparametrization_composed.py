"""Reparametrizations beside other methods: SEAL, each other, round events; their hooks."""

from pathlib import Path

import pytest
from support.pretrain import epochs, lines, source, tiny, trainer

from pretrain.recipes.recipe import Recipe
from pretrain.training.loop import train_recipe

A, B = 0.7, 0.8


def test_ascent_of_seal_keeps_the_sign_of_its_decay(tmp_path: Path) -> None:
    methods = [{"name": "seal"}, {"name": "weight_compander"}]
    both = Recipe.model_validate({**tiny("seal").model_dump(), "methods": methods})
    made = trainer(both, tmp_path)
    epochs(made, 4)
    made._open_epoch(2)
    decays = {g["effective_decay"] for g in made.ctx.optimizer.param_groups}
    assert decays == {0.0, both.weight_decay}
    up = [g for g in made.ctx.optimizer.param_groups if g["lr_scale"] == 0.01]
    # the gradient is flipped before decay is added: the flipped sign then pulls towards zero
    assert {g["weight_decay"] + g["effective_decay"] for g in up} == {both.weight_decay}


@pytest.mark.parametrize("name", ["weight_compander", "powerprop", "weight_norm"])
def test_it_composes_with_a_round_event_and_reports_it(name: str, tmp_path: Path) -> None:
    methods = [{"name": "llf"}, {"name": name}]
    both = Recipe.model_validate({**tiny("llf").model_dump(), "methods": methods})
    train_recipe(both, source(), tmp_path)
    events = [r for r in lines(tmp_path, "rewrites.jsonl") if r["method"] == "llf"]
    assert len(events) == 1
    assert events[0]["tensors"][-1] == "fc.weight"
    assert events[0]["fraction_changed"] > 0.99
