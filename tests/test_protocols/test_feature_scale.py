"""Scale of features: which heads depend on it, and the warnings where it may decide."""

from pathlib import Path

import numpy as np
import pytest
from support import fakes
from support.cli import CommandLine
from support.protocols import noise, target
from support.reading import episode_records
from torch import nn

import fsbench
from fsbench.core import seeding
from fsbench.results.entry import Loaded, write_entry
from fsbench.results.table import warn_of_feature_scale
from fsbench.results.verification import read_loaded
from leaderboard.tables import rank_board
from protocols.base import Inputs

HEADS = ("linear", "logistic", "ridge", "centroid", "cosine", "knn", "soft_kmeans")
SCALES = (0.1, 1.0, 100.0)


def scaled(scale: float) -> nn.Module:
    """Return random filters whose features are multiplied by a number."""
    with seeding.stream("test", "scale"):
        filters = nn.Conv2d(3, 32, 5, stride=2)
    filters.weight.data *= scale
    assert filters.bias is not None
    filters.bias.data *= scale
    return nn.Sequential(filters, nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the same backbone at three scales, one folder each."""
    root, cache = (tmp_path_factory.mktemp(name) for name in ("scales", "cache"))
    for scale in SCALES:
        name = f"times{scale}"
        backbone = fsbench.Backbone.from_module(
            scaled(scale), name=name, input_size=32, mean="imagenet", std="imagenet"
        )
        fsbench.evaluate(
            backbone, "toy_scan:5w5s", heads=HEADS, episodes=20, input_size=32,
            output=root / str(scale), cache=cache, progress=False,
        )  # fmt: skip
    return root


def stored(folder: Path, head: str | None = None) -> list[Loaded]:
    """Results in a folder, of one head or of all."""
    return [c for c in read_loaded(folder) if head in (None, c.result.task.head)]


@pytest.mark.parametrize("head", HEADS)
def test_a_head_depends_on_scale_as_it_declares(results: Path, head: str) -> None:
    folders = [results / str(scale) for scale in SCALES]
    small, usual, large = (
        episode_records(f"{folder}:toy_scan:5w5s/{head}").correct.tolist() for folder in folders
    )
    (spec,) = {cell.result.spec for cell in stored(results, head)}
    assert 0.25 < np.mean(usual) < 0.95
    assert (small == usual == large) == spec.scale_free
    assert spec.scale_free == (head not in ("linear", "soft_kmeans"))


def test_every_result_records_the_mean_norm(results: Path) -> None:
    features = noise(target())
    norm = np.linalg.norm(features, axis=1).mean()
    assert Inputs(None, target(), features).feature_norm == pytest.approx(norm)
    folders = [results / str(scale) for scale in SCALES]
    norms = [{cell.result.feature_norm for cell in stored(folder)} for folder in folders]
    ((small,), (usual,), (large,)) = norms
    assert [small, large] == pytest.approx([0.1 * usual, 100 * usual], rel=1e-4)


def test_compare_warns_where_the_head_depends_on_scale(results: Path, cli: CommandLine) -> None:
    sides = [str(results / "0.1"), str(results / "1.0")]
    (comparison, *_) = fsbench.compare(*sides, tasks=["toy_scan:5w5s/linear"])
    assert comparison.warning.startswith("Feature norms differ 10 times")
    assert "Accuracies of linear heads depend on the scale" in comparison.warning
    for same in (["toy_scan:5w5s/logistic"], ["toy_scan:5w5s/ridge"]):
        (comparison, *_) = fsbench.compare(*sides, tasks=same)
        assert comparison.warning == ""
    shown = cli("compare", *sides, "-t", "toy_scan:5w5s/linear").out
    assert "Warning: Feature norms differ 10 times" in " ".join(shown.split())


def test_results_without_a_norm_stay_valid_and_warn_of_nothing(results: Path) -> None:
    now = {cell.model: cell.result for cell in stored(results, "linear")}
    before = {n: r.model_validate({**r.model_dump(), "feature_norm": None}) for n, r in now.items()}
    assert warn_of_feature_scale({name: {r.column: r} for name, r in now.items()})
    assert warn_of_feature_scale({name: {r.column: r} for name, r in before.items()}) == ""
    assert not any("feature_norm" in r.model_dump_json() for r in before.values())


def test_a_board_warns(tmp_path: Path, results: Path, cli: CommandLine) -> None:
    board = tmp_path / "board"
    for name in ("0.1", "1.0"):
        (cell,) = stored(results / name, "linear")
        home = tmp_path / name / cell.model / cell.result.backbone.identity[:12]
        write_entry(home, [(cell.result, cell.records)])
        fakes.declare(tmp_path / name, name=f"scale{name}", pretraining_data=())
        cli("submit", tmp_path / name, "--board", board)
    (table,) = rank_board(board)
    assert "for scale1.0" in table.warning
    warning = "Warning: Feature norms differ 10 times"
    assert fsbench.leaderboard(board).to_markdown().count(warning) == 1
    shown = cli("leaderboard", "show", "--board", board)
    assert f"{shown.out} {shown.err}".count(warning) == 1
    assert shown.out.index(warning) < shown.out.index("tier  entry")
