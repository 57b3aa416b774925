"""Scale of features: which heads depend on it, and the warnings where it may decide."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support import fakes
from support.cli import call
from support.reading import episode_records
from torch import nn

import fsbench
from fsbench.cli.main import run
from fsbench.core import seeding
from fsbench.results.entry import write_entry
from fsbench.results.table import warn_of_scale
from fsbench.results.verification import read_loaded
from leaderboard.tables import rank_board

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


def outcomes(root: Path, head: str) -> list[Sequence[bool]]:
    tasks = [f"{root / str(scale)}:toy_scan:5w5s/{head}" for scale in SCALES]
    return [episode_records(task).correct.tolist() for task in tasks]


@pytest.mark.parametrize("head", HEADS)
def test_a_head_depends_on_scale_as_it_declares(results: Path, head: str) -> None:
    small, usual, large = outcomes(results, head)
    (spec,) = {cell.result.spec for cell in read_loaded(results) if cell.result.task.head == head}
    assert 0.25 < np.mean(usual) < 0.95
    assert (small == usual == large) == spec.scale_free
    assert spec.scale_free == (head not in ("linear", "soft_kmeans"))


def test_every_result_records_the_mean_norm(results: Path) -> None:
    norms = {
        scale: {cell.result.feature_norm for cell in read_loaded(results / str(scale))}
        for scale in SCALES
    }
    (unscaled,) = norms[1.0]
    assert unscaled is not None
    for scale, (norm,) in norms.items():
        assert norm == pytest.approx(scale * unscaled, rel=1e-4)


def test_compare_warns_where_the_head_depends_on_scale(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [str(results / "0.1"), str(results / "1.0")]
    (comparison, *_) = fsbench.compare(*sides, tasks=["toy_scan:5w5s/linear"])
    assert comparison.warning.startswith("Feature norms differ 10 times")
    assert "Accuracies of linear depend on the scale" in comparison.warning
    for same in (["toy_scan:5w5s/logistic"], ["toy_scan:5w5s/ridge"]):
        (comparison, *_) = fsbench.compare(*sides, tasks=same)
        assert comparison.warning == ""
    call("compare", *sides, "-t", "toy_scan:5w5s/linear")
    assert "Warning: Feature norms differ 10 times" in " ".join(capsys.readouterr().out.split())


def test_results_without_a_norm_stay_valid_and_warn_of_nothing(results: Path) -> None:
    cells = {cell.model: cell.result for cell in read_loaded(results)
             if cell.result.task.head == "linear"}  # fmt: skip
    assert warn_of_scale({name: {r.column: r} for name, r in cells.items()})
    before = {
        name: {r.column: type(r).model_validate({**r.model_dump(), "feature_norm": None})}
        for name, r in cells.items()
    }
    assert warn_of_scale(before) == ""
    texts = [r.model_dump_json() for by_column in before.values() for r in by_column.values()]
    assert not any("feature_norm" in json.loads(text) for text in texts)


def test_a_board_warns(tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("0.1", "1.0"):
        (cell,) = (c for c in read_loaded(results / name) if c.result.task.head == "linear")
        home = tmp_path / name / cell.model / cell.result.backbone.identity[:12]
        write_entry(home, [(cell.result, cell.records)])
        fakes.declare(tmp_path / name, name=f"scale{name}", pretraining_data=())
        with pytest.raises(SystemExit) as stop:
            run(["submit", str(tmp_path / name), "--board", str(tmp_path / "board")])
        assert not stop.value.code
    (table,) = rank_board(tmp_path / "board")
    assert "for scale1.0" in table.warning
    warning = "Warning: Feature norms differ 10 times"
    assert fsbench.leaderboard(tmp_path / "board").to_markdown().count(warning) == 1
    capsys.readouterr()
    call("leaderboard", "show", "--board", str(tmp_path / "board"))
    shown = capsys.readouterr()
    assert f"{shown.out} {shown.err}".count(warning) == 1
    assert shown.out.index(warning) < shown.out.index("tier  entry")
