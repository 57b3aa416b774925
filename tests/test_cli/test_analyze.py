"""`fsbench analyze` from outside: records, the table, pictures, what is skipped and refused."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import CommandLine
from support.pretrain import source, tiny

from fsbench.api import analyze as api
from fsbench.core import progress
from fsbench.core.schema import Analysis
from fsbench.data import SourceDataset
from pretrain.training.loop import train_recipe
from protocols.analyses import margins

CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0")


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
def _tiny_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FSBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("fsbench.api.analyze.load_source", lambda *args: source())


def records(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*/analyses/*.json"))


def test_two_networks_side_by_side(runs: dict[str, str], tmp_path: Path, cli: CommandLine) -> None:
    both = f"{runs['plain']},{runs['other']}"
    shown = cli("analyze", "-m", both, "--what", "margins,weight-percentiles", "-o", tmp_path)
    files = records(tmp_path)
    assert [file.name.rpartition("-")[0] for file in files] == [
        "margins", "weight_percentiles", "margins", "weight_percentiles",
    ]  # fmt: skip
    stored = [Analysis.model_validate_json(file.read_text()) for file in files]
    for file, record in zip(files, stored, strict=True):
        assert file.name == f"{record.question.stem}.json"
        assert file.parts[-3] == record.backbone.weights_hash[:12]
        assert file.parts[-4] == Path(record.backbone.ref).name
        assert record.provenance.seconds >= 0
    smallest = {
        record.backbone.ref: record.finding.measures[1].value
        for record in stored
        if record.question.what == "margins"
    }
    (row,) = [line.split() for line in shown.out.splitlines() if "smallest margin" in line]
    assert row[-2:] == [f"{smallest[runs[name]]:.4g}" for name in ("plain", "other")]
    for name in ("margins", "weight_percentiles"):
        assert (tmp_path / "analyses" / f"{name}.png").stat().st_size > 5000


def test_what_is_there_is_not_made_again(
    runs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    command = ("-m", runs["plain"], "--what", "margins", "-o", str(tmp_path))
    cli("analyze", *command)
    (first,) = records(tmp_path)
    content = first.read_bytes()
    made: list[Any] = []
    whole = margins.run
    monkeypatch.setattr(margins, "run", lambda *args: made.append(args) or whole(*args))
    cli("analyze", *command)
    assert (made, first.read_bytes()) == ([], content)
    cli("analyze", *command, "--set", "margins.smallest=5")
    assert (len(made), len(records(tmp_path))) == (1, 2)
    cli("analyze", *command, "--overwrite")
    assert (len(made), len(records(tmp_path))) == (2, 2)
    then, now = (Analysis.model_validate_json(text) for text in (content, first.read_bytes()))
    assert then.finding == now.finding


def test_settings_and_the_limit_are_in_the_record(
    runs: dict[str, str], tmp_path: Path, cli: CommandLine
) -> None:
    arguments = ("--images", "9", "--set", "sharpness.sigmas=[0.1]", "--set", "sharpness.draws=1")
    command = ("-m", runs["plain"], "--what", "sharpness,margins", *arguments)
    sharp, marg = cli.json("analyze", *command, "-o", tmp_path)
    assert sharp["question"]["settings"]["sigmas"] == [0.1]
    assert sharp["question"]["settings"]["images"] == marg["question"]["settings"]["images"] == 9
    assert sharp["question"]["images"] == {
        "name": "tiny", "fingerprint": "0" * 64, "input_size": 8,
    }  # fmt: skip
    assert marg["finding"]["measures"][0] == {"name": "images", "value": 9, "share": False}
    assert sharp["question"]["weights"] == marg["question"]["weights"]
    assert sharp["question"]["weights"] != sharp["backbone"]["weights_hash"], "the head counts"


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
    shown = cli("analyze", "-m", run, "--what", "all", "-o", tmp_path)
    assert f"sharpness is left out: {run} has no classifier of a source" in shown.err
    assert [file.name.rpartition("-")[0] for file in records(tmp_path)] == [
        "dormant", "effective_rank", "weight_percentiles",
    ]  # fmt: skip
    assert (
        "meta-learners and other backbones"
        in cli("analyze", "-m", run, "--what", "knn_depth", "-o", tmp_path, code=2).err
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((*CONTROL, "--what", "margins", "--source", "tiny"), 2, "no classifier of a source"),
        (("-m", "RUN", "--random-init", "0", "--what", "hessian"), 2, "no classifier of a source"),
        (("-m", "RUN", "--what", "balancedness"), 2, "leave balancedness out"),
        (("-m", "RUN", "--what", "margin"), 2, "did you mean 'margins'"),
        (("-m", "RUN", "--what", "margins", "--set", "margins.smalest=4"), 2, "smallest"),
        (("-m", "RUN", "--what", "margins", "--set", "margins.smallest=0"), 2, "greater than"),
        (("-m", "RUN", "--what", "margins", "--set", "hessian.top=3"), 2, "margins.FIELD"),
        (("-m", "RUN", "--what", "margins", "--set", "smallest=3"), 2, "write hessian.top=10"),
    ],
)
def test_refusals_come_before_any_record(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    runs: dict[str, str],
    tmp_path: Path,
    cli: CommandLine,
) -> None:
    words = [runs["plain"] if word == "RUN" else word for word in arguments]
    shown = cli("analyze", *words, "-o", tmp_path / "results", code=code).err
    assert said in shown
    assert "fix:" in shown
    assert not (tmp_path / "results").exists()


def test_a_source_with_other_classes_is_refused_and_other_images_are_told(
    runs: dict[str, str], tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("-m", runs["plain"], "--what", "margins", "-o", str(tmp_path))

    def loads(**changes: object) -> None:
        made: SourceDataset = dataclasses.replace(source(), **changes)  # type: ignore[arg-type]
        monkeypatch.setattr("fsbench.api.analyze.load_source", lambda *args: made)

    loads(n_classes=7)
    assert "trained on 4 classes, tiny has 7" in cli("analyze", *command, code=3).err
    loads(fingerprint="1" * 64)
    assert "trained on other images than this tiny" in cli("analyze", *command).err


def test_long_work_wants_yes(
    runs: dict[str, str], tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("-m", runs["plain"], "--what", "margins,weight_percentiles", "-o", str(tmp_path))
    monkeypatch.setattr(api, "WORTH_TIMING", 40)
    monkeypatch.setattr(progress, "HOUR", 0.0)
    shown = cli("analyze", *command, code=2).err
    assert "margins: about" in shown
    assert "--images" in shown
    assert not records(tmp_path)
    cli("analyze", *command, "--yes")
    cli("analyze", *command)


def test_a_record_that_answers_something_else_is_not_believed(
    runs: dict[str, str], tmp_path: Path, cli: CommandLine
) -> None:
    command = ("-m", runs["plain"], "--what", "margins", "-o", str(tmp_path))
    cli("analyze", *command)
    (path,) = records(tmp_path)
    record = json.loads(path.read_text())
    record["question"]["settings"]["smallest"] = 3
    path.write_text(json.dumps(record))
    assert "answers another question" in cli("analyze", *command, code=5).err
    cli("analyze", *command, "--overwrite")
