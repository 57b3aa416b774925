"""Resolution, pooling and preprocessing: from the command line to results, boards and checks."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from support.cli import CommandLine, call
from support.fakes import DECLARATION
from support.reading import read

import fsbench
from fsbench.api.options import VerifyOptions
from fsbench.api.recompute import recompute
from fsbench.api.request import EvaluationRequest
from fsbench.api.submit import submit
from fsbench.api.verify import verify
from fsbench.core.errors import UsageError
from fsbench.core.schema import Result
from fsbench.core.tasks import TaskId
from leaderboard.site.data import build_network_facts
from leaderboard.store import Board

NET = ("-m", "fsbench/toy_resnet", "--random-init", "0")
TASK = ("-t", "toy_tiles:5w1s", "--episodes", "2")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "results"


def evaluate(place: Path, *options: str) -> Result:
    """The only new result of `fsbench episodic`."""
    before = read(place) if place.exists() else []
    assert call("episodic", *NET, *TASK, "-o", place, *options) == 0
    return next(result for result in read(place) if result not in before)


def test_one_line_says_how_features_are_taken_before_work_starts(
    place: Path, cli: CommandLine
) -> None:
    _, first, *rest = cli("episodic", *NET, *TASK, "-o", place).err.splitlines()
    (result,) = read(place)
    for words in (
        "fsbench/toy_resnet, 0.0774 M parameters, 64 features (global average pooling)",
        "mean 0.485,0.456,0.406, std 0.229,0.224,0.225",
        "random weights, made for 32 px, ",
        "(default of the architecture); BatchNorm statistics of 40 images of toy_source at 32 px; ",
        "images (auto) 32 px: bilinear resize to 36 px square",
    ):
        assert words in first
    assert not [line for line in rest if "warning" in line]
    assert result.spec.image.input_size == 32
    assert "feature_spec" not in result.model_dump(mode="json")["backbone"]


@pytest.mark.parametrize(
    ("choice", "size", "warns"),
    [(None, 32, False), ("native", 32, False), (63, 63, False), (64, 64, True), (16, 16, True)],
)
def test_a_resolution_far_from_that_of_training_is_warned_of(
    capsys: pytest.CaptureFixture[str], choice: Any, size: int, warns: bool
) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    stated: dict[str, Any] = {"input_size": 32, "mean": "imagenet", "std": "imagenet"}
    model = fsbench.Backbone.from_module(net, name="tiny", pool="avg", **stated)
    (result,) = fsbench.evaluate(model, "toy_tiles:5w1s", episodes=2, input_size=choice)
    assert result.spec.image.input_size == size
    (*lines,) = (line for line in capsys.readouterr().err.splitlines() if "warning:" in line)
    assert bool(lines) == warns
    parts = (f"{size} px is far from", "32 px that module:tiny was trained", "auto takes 32 px")
    assert all(part in line for line in lines for part in parts)


def test_auto_is_the_protocols_resolution_for_networks_of_large_images() -> None:
    task = TaskId.parse("toy_tiles:5w1s/linear@ibm")
    sizes = {size: EvaluationRequest(()).spec(task, size).image.input_size for size in (127, 160)}
    assert sizes == {127: 127, 160: 224}


CHOICES = (
    *("--pool", "max", "--layers", "layer3", "--mean", ".5,.4,.3", "--std", "0.25"),
    *("--interpolation", "bicubic", "--crop", "0.875"),
)


def test_choices_are_recorded_and_lie_beside_the_plain_result(place: Path) -> None:
    plain, chosen = evaluate(place), evaluate(place, *CHOICES)
    facts = chosen.backbone
    assert facts.weights_hash == plain.backbone.weights_hash
    assert (facts.mean, facts.std, facts.feature_dim) == ((0.5, 0.4, 0.3), (0.25,) * 3, 32)
    assert facts.features == "global max pooling of layer3"
    assert str(chosen.column) == "toy_tiles:5w1s/linear@ibm 32px bicubic crop=0.875"
    folders = {path.parent.name for path in place.rglob("entry.json")}
    assert folders == {plain.backbone.identity[:12], facts.identity[:12]}


def test_choices_are_repeated_by_recompute_and_verify_and_shown_on_the_page(
    place: Path, tmp_path: Path
) -> None:
    evaluate(place, *CHOICES)
    submit(place, tmp_path / "board", DECLARATION)
    board = Board.open(tmp_path / "board")
    script = "\n".join(recompute(board.entry("entry"), str(tmp_path / "board")))
    arguments = shlex.split(script, comments=True)
    for option in ("--pool=max", "--layers=layer3", "--mean=0.5,0.4,0.3", "--std=0.25,0.25,0.25"):
        assert option in arguments
    facts = {"board": tmp_path / "board", "entry": "entry", "random_init": 0, "seed": 0}
    assert verify(VerifyOptions(("fsbench/toy_resnet",), **facts)).verdict == "verified"
    (network,) = board.entry("entry").networks
    shown = build_network_facts(board.entry("entry"), network)
    assert shown["feature_choices"] == "max, layer3, mean=0.5,0.4,0.3, std=0.25"
    assert shown["images"] == ["32 px: bicubic resize to 36 px square, centre crop"]
    assert "mean 0.5,0.4,0.3, std 0.25 (the user, in place of default" in shown["preprocessing"]


def test_choices_belong_to_references_and_not_to_specs(place: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    made = fsbench.Backbone.from_module(
        net, name="tiny", input_size=32, pool="avg", mean="imagenet", std="imagenet"
    )
    with pytest.raises(UsageError, match="a backbone in memory") as caught:
        fsbench.evaluate(made, "toy_tiles:5w1s", pool="max")
    assert "Backbone.from_module" in caught.value.fix
    result = evaluate(place)
    options: dict[str, Any] = {"spec": place, "random_init": 0, "progress": False}
    with pytest.raises(UsageError, match="beside --spec"):
        fsbench.evaluate("fsbench/toy_resnet", interpolation="bicubic", **options)
    (again,) = fsbench.evaluate("fsbench/toy_resnet", layers="layer2", mean=0.5, **options)
    assert again.spec == result.spec
    assert again.backbone.feature_spec.variant == ("layer2", "mean=0.5")
