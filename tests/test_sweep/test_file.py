"""Sweep files: strict, without code, unknown keys answered by the nearest one."""

from pathlib import Path

import pytest

from fsbench.api.request import build_request
from fsbench.core.errors import UsageError
from fsbench.sweep.backbones import TrainingJob
from fsbench.sweep.file import SweepFile, read_sweep_file
from fsbench.sweep.graph import load_given
from pretrain.recipes.registry import load_recipe


def read_text(tmp_path: Path, text: str) -> SweepFile:
    path = tmp_path / "sweep.yaml"
    path.write_text(text, encoding="utf8")
    return read_sweep_file(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pretrian: []", "use 'pretrain'"),
        ("pretrain: [{recipes: [toy/seal], seed: [0]}]", r"use 'pretrain.0.seeds'"),
        ("backbones: [{modle: timm/resnet18}]", "did you mean 'model'"),
        ("backbones: [{model: a}]\ngpus: {head: 1}", "use 'gpus.heads'"),
        ("backbones: [{model: a}]\ngpus: {affine: 2}", "gpus.affine: .*less than or equal to 1"),
        ("backbones: [{model: a}]\ngpus: {pretrain: 1.5}", "whole ones: not 1.5"),
        ("backbones: [{model: a}]\nevaluate: [{tasks: [toy], shotz: [1]}]", "did you mean 'shots'"),
        ("backbones: [{model: a}]\nsubmit: [{licence: MIT}]", "use 'submit.0.license'"),
        ("backbones: [{model: a, pool: middle}]", "unknown pool 'middle'"),
        ("backbones: [{model: 'py:os:getcwd'}]", "names code to run"),
        ("backbones: [{model: ' py:os:getcwd'}]", "names code to run"),
        ("backbones: [{model: 'a.pth@py:os:getcwd'}]", "names code to run"),
        ("backbones: [{model: a.pth, arch: 'py:os:getcwd'}]", "names code to run"),
        ("evaluate: [{tasks: [toy]}]", "names no backbone"),
        ("backbones: [{model: a}]\nthreads: 0", "threads"),
        ("backbones: [{model: a}]\njobs: {pretrain: {retries: 3}}", "unknown key"),
        ("- a", "is no mapping"),
        ("a: &x [1]\nb: *x", "alias"),
        ("threads: 1\nthreads: 2", "duplicate key"),
        ("a: [", "cannot be read"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        read_text(tmp_path, text)
    assert str(tmp_path / "sweep.yaml") in str(caught.value)


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_sweep_file(tmp_path / "none.yaml")


def test_defaults_resolution_and_features_of_backbones(tmp_path: Path) -> None:
    text = """
backbones:
  - {model: fsbench/toy_resnet, random_init: 0}
  - {model: fsbench/toy_resnet, random_init: 0, pool: max, layers: layer2}
evaluate: [{tasks: [toy_tiles], shots: [1]}]
"""
    file = read_text(tmp_path, text)
    assert (file.threads, file.evaluate[0].episodes) == (1, 600)
    plain, chosen = (load_given(block) for block in file.backbones)
    assert plain.loaded.identity != chosen.loaded.identity
    assert chosen.title == "fsbench-toy_resnet-random0-max-layer2"
    request = build_request(file.evaluate[0])
    (task,) = [task for task in request.tasks if not task.probe]
    assert request.spec(task, *plain.sizes).image.input_size == 32
    trained = TrainingJob(recipe=load_recipe("paper/seal"))
    assert trained.sizes == (64, 224)
    assert request.spec(task, *trained.sizes).image.input_size == 224
