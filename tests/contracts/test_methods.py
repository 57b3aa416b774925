"""What every training method owes; a new method file is covered without a change here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fsbench import backbones
from fsbench.backbones import normalizers
from fsbench.backbones.architectures import ARCHITECTURES
from pretrain import METHODS, surgery
from pretrain.context import Context
from pretrain.loop import pretrain
from pretrain.method import Rank, hooks_of
from pretrain.recipes import control
from tests.fakes_pretrain import equal, killed_at, lines, source, tiny, trainer, weights

methods = pytest.mark.parametrize("name", METHODS.names())
doing = pytest.mark.parametrize("name", [n for n in METHODS.names() if n != "normal"])


@methods
def test_it_declares_what_a_method_must(name: str) -> None:
    method = METHODS.load(name)
    assert method().name == name
    assert isinstance(method.RANK, Rank)
    assert method.SOURCE
    assert method.NEUTRAL != "not declared"
    assert method() == method()
    assert len({method(), method()}) == 1


@doing
def test_it_does_something(name: str, tmp_path: Path) -> None:
    assert hooks_of(METHODS.load(name))
    for run, recipe in ((name, tiny(name)), ("normal", control(tiny(name)))):
        pretrain(recipe, source(), tmp_path / run)
    ours, theirs = weights(tmp_path / name), weights(tmp_path / "normal")
    assert not equal({tensor: ours[tensor] for tensor in theirs}, theirs)


@methods
def test_neutral_settings_are_normal_bit_for_bit(name: str, tmp_path: Path) -> None:
    neutral = METHODS.load(name).NEUTRAL
    if isinstance(neutral, str):
        pytest.skip(neutral)
    settings = [f"{name}.{field}={value}" for field, value in neutral.items()]
    neutralised = tiny(name, *settings)
    pretrain(neutralised, source(), tmp_path / "neutral")
    pretrain(control(neutralised), source(), tmp_path / "normal")
    assert equal(weights(tmp_path / "neutral"), weights(tmp_path / "normal"))


@methods
def test_the_same_seed_gives_the_same_bits_and_another_one_others(
    name: str, tmp_path: Path
) -> None:
    for run, seed in (("a", 0), ("b", 0), ("c", 1)):
        pretrain(tiny(name, f"seed={seed}"), source(), tmp_path / run)
    a, b, c = (weights(tmp_path / run) for run in "abc")
    assert equal(a, b)
    assert not equal(a, c)


@methods
@pytest.mark.parametrize("step", [8, 9, 13])
def test_it_resumes_exactly_at_and_inside_a_round(
    name: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny(name)
    pretrain(recipe, source(), tmp_path / "whole")
    killed_at(step, recipe, tmp_path / "parts", monkeypatch)
    pretrain(recipe, source(), tmp_path / "parts")
    assert equal(weights(tmp_path / "parts"), weights(tmp_path / "whole"))
    for log in ("log.jsonl", "rewrites.jsonl"):
        assert lines(tmp_path / "parts", log) == lines(tmp_path / "whole", log)


def effective(ctx: Context) -> dict[str, Tensor]:
    """All effective tensors under the names of the plain architecture, and fixed normalisers."""
    plain = ARCHITECTURES.load(ctx.recipe.architecture).build(ctx.classes, ctx.recipe.width)
    names = plain.state_dict().keys() | normaliser_names(normalizers.shapes(ctx.model))
    return {n: surgery.get_weight(ctx.model, n).detach().clone() for n in names}


def normaliser_names(modules: Iterable[str]) -> set[str]:
    return {name for module in modules for name in normalizers.tensors(module)}


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
def test_the_export_is_the_plain_architecture_and_loads(name: str, tmp_path: Path) -> None:
    run = pretrain(tiny(name), source(), tmp_path / "run")
    plain = ARCHITECTURES.load("toy_resnet").build(source().n_classes, 2)
    inserted = json.loads((run / "run.json").read_text())["normalizers"]
    assert weights(run).keys() == plain.state_dict().keys() | normaliser_names(inserted)
    backbone = backbones.load(f"run:{run}")
    features = backbone.features(torch.from_numpy(source().val.images[:3]))
    assert features.shape == (3, 16)
    assert torch.isfinite(features).all()
    assert backbone.facts.recipe == f"toy/{name}"
    assert backbone.facts.source_accuracy == lines(run)[-1]["val_accuracy"]
    assert (backbone.facts.source_accuracy is None) == (tiny(name).loader == "episodes")


@methods
def test_it_trains_under_autocast(name: str, tmp_path: Path) -> None:
    pretrain(tiny(name, "precision=bf16"), source(), tmp_path)
    assert all(torch.isfinite(t).all() for t in weights(tmp_path).values())
