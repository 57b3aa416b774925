"""`fsbench analyze` from outside: records, the table, pictures, what is skipped and refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cases import read_cases
from support.cli import CommandLine
from support.pretrain import source, tiny
from support.protocols import describe_images

from fsbench.api import analyze as api
from fsbench.core import progress
from fsbench.core.schema import Analysis
from pretrain.training.loop import train_recipe
from protocols.analyses import margins


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two residual runs and a chain."""
    folder = tmp_path_factory.mktemp("runs")
    short = ("plan.epochs=1", "plan.rounds=1")
    recipes = {
        "plain": tiny("normal", *short),
        "other": tiny("normal", *short, "seed=1"),
        "chain": tiny("normal", *short, "architecture=mlp"),
    }
    return {
        name: f"run:{train_recipe(recipe, source(), folder / name)}"
        for name, recipe in recipes.items()
    }


@pytest.fixture(autouse=True)
def _tiny_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fsbench.api.analyze.load_source", lambda *args: source())


def records(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*/analyses/*.json"))


def names(folder: Path) -> list[str]:
    return [file.name.rpartition("-")[0] for file in records(folder)]


def test_two_networks_side_by_side(runs: dict[str, str], tmp_path: Path, cli: CommandLine) -> None:
    both = f"{runs['plain']},{runs['other']}"
    shown = cli("analyze", "-m", both, "--what", "margins,weight_percentiles", "-o", tmp_path)
    assert names(tmp_path) == ["margins", "weight_percentiles"] * 2
    smallest = {}
    for file in records(tmp_path):
        record = Analysis.model_validate_json(file.read_text())
        folder = (Path(record.backbone.ref).name, record.backbone.weights_hash[:12], "analyses")
        name = f"{record.question.what}-{record.question.digest()[:8]}.json"
        assert file.parts[-4:] == (*folder, name)
        if record.question.what == "margins":
            smallest[record.backbone.ref] = f"{record.finding.measures[1].value:.4g}"
    (row,) = [line.split() for line in shown.out.splitlines() if "smallest margin" in line]
    assert row[-2:] == [smallest[runs[name]] for name in ("plain", "other")]
    for name in ("margins", "weight_percentiles"):
        assert (tmp_path / "analyses" / f"{name}.png").stat().st_size > 5000


def test_what_is_there_is_not_made_again_and_answers_its_question(
    runs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    command = ("analyze", "-m", runs["plain"], "--what", "margins", "-o", tmp_path)
    cli(*command)
    (first,) = records(tmp_path)
    content = first.read_bytes()
    made: list[Any] = []
    whole = margins.run
    monkeypatch.setattr(margins, "run", lambda *args: made.append(args) or whole(*args))
    cli(*command)
    assert (made, first.read_bytes()) == ([], content)
    cli(*command, "--set", "margins.smallest=5")
    assert (len(made), len(records(tmp_path))) == (1, 2)
    cli(*command, "--overwrite")
    assert (len(made), len(records(tmp_path))) == (2, 2)
    then, now = (Analysis.model_validate_json(text) for text in (content, first.read_bytes()))
    assert then.finding == now.finding
    record = json.loads(content)
    record["question"]["settings"]["smallest"] = 3
    first.write_text(json.dumps(record))
    assert "answers another question" in cli(*command, code=5).err
    cli(*command, "--overwrite")


def test_settings_and_the_limit_are_in_the_record(
    runs: dict[str, str], tmp_path: Path, cli: CommandLine
) -> None:
    arguments = ("--images", "9", "--set", "sharpness.sigmas=[0.1]", "--set", "sharpness.draws=1")
    command = ("-m", runs["plain"], "--what", "sharpness,margins", *arguments)
    sharp, marg = cli.json("analyze", *command, "-o", tmp_path)
    question = sharp["question"]
    assert question["settings"]["sigmas"] == [0.1]
    assert question["settings"]["images"] == marg["question"]["settings"]["images"] == 9
    assert question["images"] == {"name": "tiny", "fingerprint": "0" * 64, "input_size": 8}
    assert marg["finding"]["measures"][0] == {"name": "images", "value": 9, "share": False}
    assert question["weights"] == marg["question"]["weights"]
    assert question["weights"] != sharp["backbone"]["weights_hash"], "the head counts"


def test_all_takes_what_every_network_has(
    runs: dict[str, str], tmp_path: Path, cli: CommandLine
) -> None:
    few = ("--images", "8", "--set", "hessian.top=1", "--set", "sharpness.draws=1")
    both = ("-m", f"{runs['plain']},{runs['chain']}")
    shown = cli("analyze", *both, "--what", "all", *few, "-o", tmp_path)
    assert "balancedness is left out: toy_resnet does not end in a plain chain" in shown.err
    assert len(records(tmp_path)) == 8 + 9
    (row,) = [line.split() for line in shown.out.splitlines() if "balancedness  " in line[16:]]
    assert row[-2] == "-"
    assert 0 < float(row[-1]) <= 1


def test_meta_learners_and_other_backbones_have_no_head_for_the_source(
    tmp_path: Path, cli: CommandLine
) -> None:
    """Its head tells the classes of a task apart: labels of the source mean nothing to it."""
    run = f"run:{train_recipe(tiny('protonet', 'plan.rounds=1'), source(), tmp_path / 'run')}"
    command = ("analyze", "-m", run, "-o", tmp_path, "--what")
    assert f"sharpness is left out: {run} has no classifier of a source" in cli(*command, "all").err
    assert names(tmp_path) == ["dormant", "effective_rank", "weight_percentiles"]
    assert "meta-learners and other backbones" in cli(*command, "knn_depth", code=2).err


@pytest.mark.parametrize(("arguments", "text"), read_cases("data")["analyses"])
def test_refusals_come_before_any_record(
    arguments: tuple[str, ...], text: str, runs: dict[str, str], tmp_path: Path, cli: CommandLine
) -> None:
    words = [runs["plain"] if word == "RUN" else word for word in arguments]
    shown = cli("analyze", *words, "-o", tmp_path / "results", code=2).err
    assert text in shown
    assert "fix:" in shown
    assert not (tmp_path / "results").exists()


def test_a_source_with_other_classes_is_refused_and_other_images_are_told(
    runs: dict[str, str], tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("analyze", "-m", runs["plain"], "--what", "margins", "-o", tmp_path)
    seven = replace(source(), facts=describe_images("tiny", "abcdefg", 10, "source"))
    monkeypatch.setattr("fsbench.api.analyze.load_source", lambda *args: seven)
    assert "trained on 4 classes, tiny has 7" in cli(*command, code=3).err
    other = replace(source(), fingerprint="1" * 64)
    monkeypatch.setattr("fsbench.api.analyze.load_source", lambda *args: other)
    assert "trained on other images than this tiny" in cli(*command).err


def test_long_work_wants_yes(
    runs: dict[str, str], tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = ("--what", "margins,weight_percentiles", "-o", tmp_path)
    command = ("analyze", "-m", runs["plain"], *what)
    monkeypatch.setattr(api, "WORTH_TIMING", 40)
    monkeypatch.setattr(progress, "HOUR", 0.0)
    shown = cli(*command, code=2).err
    assert "margins: about" in shown
    assert "--images" in shown
    assert not records(tmp_path)
    cli(*command, "--yes")
    cli(*command)
