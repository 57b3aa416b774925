"""What every training method owes; a new method file is covered without a change here."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
import torch
from support.pretrain import equal, killed_at, lines, source, tiny, trainer, weights
from torch import Tensor

from fsbench import backbones
from fsbench.backbones import architectures
from fsbench.backbones.networks import load_architecture
from pretrain import METHODS
from pretrain.method import hooks_of
from pretrain.recipes.recipe import ActingOrder, Recipe
from pretrain.recipes.registry import control_recipe
from pretrain.training.context import Context
from pretrain.training.loop import train_recipe
from pretrain.weights import surgery

methods = pytest.mark.parametrize("name", METHODS.names())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The run of a recipe on the tiny source, trained once for all tests that only read it."""

    @cache
    def run(recipe: Recipe, device: str = "cpu") -> Path:
        return train_recipe(recipe, source(), tmp_path_factory.mktemp("run"), device=device)

    return run


@methods
def test_it_declares_what_it_must_does_something_and_is_normal_if_neutral(
    name: str, trained: Callable[[Recipe], Path]
) -> None:
    method = METHODS.load(name)
    assert method().name == name
    assert isinstance(method.RANK, ActingOrder)
    assert method.SOURCE
    assert len({method(), method()}) == 1
    if name != "normal":
        assert hooks_of(method)
        ours, theirs = (weights(trained(r)) for r in (tiny(name), control_recipe(tiny(name))))
        assert not equal({tensor: ours[tensor] for tensor in theirs}, theirs)
    if isinstance(method.NEUTRAL, str):
        assert method.NEUTRAL != "not declared"
        return
    settings = [f"{name}.{field}={value}" for field, value in method.NEUTRAL.items()]
    neutral = tiny(name, *settings)
    assert equal(weights(trained(neutral)), weights(trained(control_recipe(neutral))))


@methods
def test_the_same_seed_gives_the_same_bits_and_another_one_others(
    name: str, trained: Callable[[Recipe], Path], tmp_path: Path
) -> None:
    first, second = (trained(tiny(name, f"seed={seed}")) for seed in (0, 1))
    again = train_recipe(tiny(name, "seed=0"), source(), tmp_path / "again")
    assert equal(weights(again), weights(first))
    assert not equal(weights(second), weights(first))
    train_recipe(tiny(name, "precision=bf16"), source(), tmp_path / "autocast")
    assert all(torch.isfinite(tensor).all() for tensor in weights(tmp_path / "autocast").values())


@methods
@pytest.mark.parametrize("step", [8, 9, 13])
def test_it_resumes_exactly_at_and_inside_a_round(
    name: str,
    step: int,
    device: str,
    trained: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = tiny(name, *(["deterministic=true"] if device != "cpu" else []))
    whole = trained(recipe, device)
    killed_at(step, recipe, tmp_path, monkeypatch, device=device)
    train_recipe(recipe, source(), tmp_path, device=device)
    assert equal(weights(tmp_path), weights(whole))
    for log in ("log.jsonl", "rewrites.jsonl"):
        assert lines(tmp_path, log) == lines(whole, log)


def effective(ctx: Context) -> dict[str, Tensor]:
    """All effective tensors under the names of the plain architecture, and fixed normalisers."""
    plain = load_architecture(ctx.recipe.architecture).build(ctx.classes, ctx.recipe.width)
    names = plain.state_dict().keys() | normaliser_names(architectures.normalizer_shapes(ctx.model))
    return {n: surgery.get_weight(ctx.model, n).detach().clone() for n in names}


def normaliser_names(modules: Iterable[str]) -> set[str]:
    return {name for module in modules for name in architectures.normalizer_tensors(module)}


@methods
def test_events_rewrite_exactly_what_they_report(name: str, tmp_path: Path) -> None:
    made = trainer(tiny(name), tmp_path)
    while not made.ctx.clock.done:
        before, reported = effective(made.ctx), len(lines(tmp_path, "rewrites.jsonl"))
        made._open_epoch(2)
        after = effective(made.ctx)
        changed = {n for n in before if not torch.equal(before[n], after[n])}
        new = lines(tmp_path, "rewrites.jsonl")[reported:]
        assert changed == {tensor for record in new for tensor in record["tensors"]}
        assert all(record["method"] == name for record in new)
        made._step(2)
        made._epoch(lambda images: None)


@methods
def test_the_export_is_the_plain_architecture_and_loads(
    name: str, trained: Callable[[Recipe], Path]
) -> None:
    run = trained(tiny(name))
    plain = load_architecture("toy_resnet").build(source().n_classes, 8)
    inserted = json.loads((run / "run.json").read_text())["normalizers"]
    assert weights(run).keys() == plain.state_dict().keys() | normaliser_names(inserted)
    backbone = backbones.load_backbone(f"run:{run}")
    features = backbone.features(torch.from_numpy(source().val.images[:3]))
    assert features.shape == (3, 64)
    assert torch.isfinite(features).all()
    assert backbone.facts.recipe == f"toy/{name}"
    assert backbone.facts.source_accuracy == lines(run)[-1]["val_accuracy"]
    assert (backbone.facts.source_accuracy is None) == (tiny(name).loader == "episodes")
