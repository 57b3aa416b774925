"""Scripts of the pilot study: they agree with the suite and notice a deviation."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file
from studies import classify_pixels, recompute_result
from support import cli
from support.sweep import images

from fsbench import backbones

Arguments = tuple[Path, Path, Path, Path]
N_EPISODES = 6


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> Arguments:
    """RUN EPISODES IMAGES ENTRY of random weights on noise whose brightness tells the class."""
    root = tmp_path_factory.mktemp("result")
    task = f"folder:{images(root / 'images', 5, 20)}:5w1s"
    (root / "run").mkdir()
    weights = backbones.load_backbone("fsbench/pilot_resnet", random_init=0).module.state_dict()
    save_file({k: v.contiguous() for k, v in weights.items()}, root / "run" / "model.safetensors")
    model = f"-m {root}/run/model.safetensors --arch fsbench/pilot_resnet"
    size = f"--episodes {N_EPISODES} --input-size 32 --threads 1 --mean imagenet --std imagenet"
    folders = f"-o {root}/results --cache {root}/cache"
    export = f"export {task} --episodes {N_EPISODES} -o {root}/episodes.jsonl"
    assert cli.call("episodic", "-t", task, *f"{model} {size} {folders}".split()) == 0
    assert cli.call("episodes", *export.split()) == 0
    (entry,) = (root / "results").rglob("entry.json")
    return root / "run", root / "episodes.jsonl", root / "images", entry.parent


def test_an_ordinary_loop_outside_the_suite_agrees_at_the_same_scale_of_pixels(
    arguments: Arguments, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recompute_result.main(*arguments, "folder") == 0
    assert f"{N_EPISODES} episodes: agree" in capsys.readouterr().out
    monkeypatch.setattr(recompute_result, "STD", (4.0, 4.0, 4.0))
    assert recompute_result.main(*arguments, "folder") == 1


def test_bright_and_dark_classes_are_told_by_their_pixels_alone(
    arguments: Arguments, capsys: pytest.CaptureFixture[str]
) -> None:
    classify_pixels.main(*arguments[1:3])
    shown = capsys.readouterr().out
    assert shown.endswith(f"over {N_EPISODES} episodes\n")
    assert float(shown.split()[0]) > 90
    dark, bright = np.zeros((2, 4)), np.ones((2, 4))
    support, query = np.concatenate([dark, bright]), np.concatenate([dark, dark])
    assert classify_pixels.accuracy(support, query, 2) == 0.5
