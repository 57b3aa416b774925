"""Scripts of the pilot study: they agree with the suite and notice a deviation."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file
from studies import classify_pixels, compare_gaps, recompute_cell
from support import cli, fakes
from support.sweep import images

from fsbench import backbones
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.results import assembly
from fsbench.results.entry import write_entry

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
    assert recompute_cell.main(*arguments, "folder") == 0
    assert f"{N_EPISODES} episodes: agree" in capsys.readouterr().out
    monkeypatch.setattr(recompute_cell, "STD", (4.0, 4.0, 4.0))
    assert recompute_cell.main(*arguments, "folder") == 1


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


def make_result(adaptation: str, right: list[int]) -> tuple[Result, EpisodeRecords]:
    """Return a result with so many of 2 x 2 queries right in each episode."""
    n = len(right)
    correct = np.array([np.arange(4).reshape(2, 2) < count for count in right])
    records = EpisodeRecords(np.arange(n), correct, np.zeros(n, np.bool_), np.ones(n, np.bool_))
    episode = EpisodeSpec(n_way=2, n_query=2)
    spec = EpisodicSpec(adaptation=adaptation, episode=episode, n_episodes=n)
    data, made = fakes.official("eurosat"), fakes.provenance()
    return assembly.build_result(fakes.facts(), data, spec, records, False, made), records


def test_a_gap_is_over_the_episodes_that_linear_and_affine_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Right of 2 x 2 queries in the two shared ones: linear 3 against 1, affine 2 against 2."""
    for entry, linear, affine in (("a", [3, 3, 0], [2, 2]), ("b", [1, 1, 4], [2, 2])):
        results = [make_result("linear", linear), make_result("affine", affine)]
        write_entry(tmp_path / entry, results)
    compare_gaps.main(tmp_path / "a", tmp_path / "b")
    assert capsys.readouterr().out.splitlines() == [
        "linear +50.00 ± 0.00 over 2 episodes of every column",
        "affine +0.00 ± 0.00 over 2 episodes of every column",
        "change -50.00 ± 0.00 over 2 episodes of every column",
    ]
