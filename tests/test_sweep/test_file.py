"""Sweep files: strict, without code, unknown keys answered by the nearest one."""

from pathlib import Path

import pytest

from fsbench.api.request import build_request
from fsbench.core.errors import UnknownName, UsageError
from fsbench.sweep.backbones import TrainingJob
from fsbench.sweep.file import read_sweep_file
from fsbench.sweep.graph import load_given
from pretrain.recipes.registry import load_recipe

GOOD = """
pretrain: [{recipes: [toy/seal], seeds: [0, 1]}]
evaluate: [{tasks: [toy], shots: [1, 5]}]
"""


def write_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sweep.yaml"
    path.write_text(text, encoding="utf8")
    return path


def test_what_is_declared_and_what_is_not(tmp_path: Path) -> None:
    file = read_sweep_file(write_file(tmp_path, GOOD))
    assert file.pretrain[0].seeds == (0, 1)
    assert file.threads == 1
    assert file.evaluate[0].episodes == 600


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("pretrian: []", "pretrain"),
        ("pretrain: [{recipes: [toy/seal], seed: [0]}]", "seeds"),
        ("backbones: [{modle: timm/resnet18}]", "model"),
        ("backbones: [{model: a}]\nevaluate: [{tasks: [toy], shotz: [1]}]", "shots"),
        ("backbones: [{model: a}]\nsubmit: {licence: MIT}", "license"),
    ],
)
def test_an_unknown_key_is_answered_by_the_nearest(tmp_path: Path, text: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"did you mean '{meant}'"):
        read_sweep_file(write_file(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
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
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_sweep_file(write_file(tmp_path, text))


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_sweep_file(tmp_path / "none.yaml")


def test_resolution_and_features_of_backbones(tmp_path: Path) -> None:
    text = """
backbones:
  - {model: fsbench/toy_resnet, random_init: 0}
  - {model: fsbench/toy_resnet, random_init: 0, pool: max, layers: layer2}
evaluate: [{tasks: [toy_tiles], shots: [1]}]
"""
    file = read_sweep_file(write_file(tmp_path, text))
    plain, chosen = (load_given(block) for block in file.backbones)
    assert plain.loaded.identity != chosen.loaded.identity
    assert chosen.label == "fsbench-toy_resnet-random0-max-layer2"
    request = build_request(file.evaluate[0])
    (task,) = [task for task in request.tasks if not task.probe]
    assert request.spec(task, *plain.sizes).image.input_size == 32
    recipe = load_recipe("paper/seal")
    trained = TrainingJob(recipe=recipe, source_fingerprint="0" * 64)
    assert trained.sizes == (64, 224)
    assert request.spec(task, *trained.sizes).image.input_size == 224
    file = read_sweep_file(write_file(tmp_path, text.replace("pool: max", "pool: middle")))
    with pytest.raises(UsageError, match="pool"):
        load_given(file.backbones[1])
