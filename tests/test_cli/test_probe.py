"""fsbench probe from end to end: official splits, schedules, choices, neighbours, errors."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.cli import CommandLine
from support.reading import read

import fsbench
from fsbench.api.request import EvaluationRequest
from fsbench.core.schema import Result
from fsbench.core.seeding import words
from fsbench.core.specs import KnnSpec, ProbeSpec
from fsbench.core.tasks import TaskId
from fsbench.data.catalog import TARGETS

FACTS = TARGETS.load("cub200").FACTS
CONTROL = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")
TRAIN, TEST = 6, 4
Probe = Callable[..., tuple[Result, "pytest.CaptureResult[str]"]]


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    """CUB-200-2011 with three classes: TRAIN and TEST images each, told apart by brightness."""
    base = tmp_path / "data" / "CUB_200_2011"
    tables: dict[str, list[str]] = {"images": [], "image_class_labels": [], "train_test_split": []}
    for label in (0, 7, 199):
        for rank in range(TRAIN + TEST):
            name, number = f"{FACTS.classes[label]}/{rank}.png", len(tables["images"]) + 1
            noise = words(40 * 40 * 3, "bird", label, rank) % np.uint64(60)
            pixels = noise.astype(np.uint8).reshape(40, 40, 3) + np.uint8(60 * (label % 4))
            (base / "images" / name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(base / "images" / name)
            tables["images"].append(f"{number} {name}")
            tables["image_class_labels"].append(f"{number} {label + 1}")
            tables["train_test_split"].append(f"{number} {int(rank < TRAIN)}")
    for name, lines in tables.items():
        (base / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return base.parent


@pytest.fixture
def probe(birds: Path, tmp_path: Path, cli: CommandLine) -> Probe:
    """Return a function that probes a task for three epochs: its result and what is printed."""

    def run(task: str, *settings: str) -> tuple[Result, "pytest.CaptureResult[str]"]:
        out = tmp_path / "-".join(["r", *settings])
        where = ("--data", birds, "-o", out, "--cache", tmp_path / "cache", "--limit", "3")
        sets = [word for text in settings for word in ("--set", f"probe.{text}")]
        shown = cli("probe", *CONTROL, "-t", task, *where, *sets)
        (result,) = read(out)
        return result, shown

    return run


def test_an_official_split_is_used_and_both_rules_are_shown(probe: Probe) -> None:
    result, shown = probe("cub200")
    assert result.spec == ProbeSpec(
        image=result.spec.image, epochs=3, held_out=0.1, select="held_out", epoch="best"
    )
    assert (result.score.n, result.flags) == (3 * TEST, ("subset", "limited"))
    assert result.dataset.test_counts == (TEST,) * 3
    assert "cub200:probe held-out best on test" in shown.out
    assert "rate and epoch picked on a held-out part of train" in shown.err
    assert "18 of 5994 train images and 12 of 5794 test images" in shown.err


def test_the_choice_of_the_paper_has_a_column_of_its_own(probe: Probe) -> None:
    result, shown = probe("cub200", "select=test")
    assert str(result.column) == "cub200:probe 32px"
    assert result.spec == ProbeSpec(image=result.spec.image, epochs=3, held_out=0.1)
    assert "cub200:probe lr held out" in shown.out
    assert "picked on the test images as SEAL reports" in shown.err
    result, _ = probe("cub200", "select=held_out", "epoch=last")
    assert str(result.column) == "cub200:probe 32px lr-held-out"


def test_classes_of_other_sizes_have_balanced_accuracy_beside(
    birds: Path, tmp_path: Path, probe: Probe
) -> None:
    images = birds / "CUB_200_2011" / "images"
    for file in sorted(sorted(images.iterdir())[0].iterdir())[5:]:
        file.unlink()
    result, shown = probe(f"folder:{images}")
    assert result.other is not None
    assert result.dataset.test_counts == (1, 2, 2)
    (row,) = fsbench.load_results(tmp_path / "r").to_frame().to_dict("records")
    assert row["top1"] == row["accuracy"] == result.score.mean
    assert row["balanced_accuracy"] == result.other.mean
    assert "probe held-out balanced accuracy" in shown.out
    result, _ = probe(f"folder:{images}", "score=balanced_accuracy")
    assert str(result.column).endswith(":probe 32px held-out balanced")
    assert result.other is not None
    assert result.score.mean == row["balanced_accuracy"]


@pytest.mark.parametrize(
    ("task", "score"),
    [
        *(("isic:probe", "balanced_accuracy"), ("isic:knn", "balanced_accuracy")),
        *(("eurosat:probe", "accuracy"), ("dogs:knn", "accuracy"), ("folder:x:probe", "accuracy")),
    ],
)
def test_the_metric_of_a_data_set_is_the_score_of_its_probes(task: str, score: str) -> None:
    spec = EvaluationRequest(()).spec(TaskId.parse(task), 224)
    assert spec.score == score
    assert ("balanced" in spec.variant) == (score == "balanced_accuracy")


def test_neighbours_find_what_brightness_tells(probe: Probe) -> None:
    result, _ = probe("cub200:knn", "k=3")
    assert isinstance(result.spec, KnnSpec)
    assert (result.spec.k, result.spec.split) == (3, "official")
    assert result.flags == ("subset",), "a limit changes nothing"
    assert result.score.mean > 0.5


def test_a_derived_split_chooses_alike(birds: Path, probe: Probe) -> None:
    images = birds / "CUB_200_2011" / "images"
    result, _ = probe(f"folder:{images}")
    assert isinstance(result.spec, ProbeSpec)
    assert (result.spec.split, result.spec.held_out) == ("derived_80_20", 0.1)
    assert str(result.column).endswith(":probe 32px held-out")
    assert "beside" in result.details
    result, _ = probe(f"folder:{images}", "select=test", "schedule=cosine")
    assert str(result.column).endswith(":probe 32px cosine")
    assert isinstance(result.spec, ProbeSpec)
    assert result.spec.held_out is None
    assert "beside" not in result.details
