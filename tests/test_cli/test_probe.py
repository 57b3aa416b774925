"""fsbench probe from end to end: official splits, views, schedules, choices, neighbours, errors."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.cli import call
from support.reading import probe_records, read

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


def probed(birds: Path, out: Path, *more: str) -> list[Result]:
    """Results of three epochs, in the order of their files."""
    where = ("--data", str(birds), "-o", str(out), "--cache", str(birds.parent / "cache"))
    assert call("probe", *CONTROL, *where, "--limit", "3", *more) == 0
    return read(out)


def test_an_official_split_is_used_and_both_rules_are_shown(
    birds: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (result,) = probed(birds, tmp_path / "a", "-t", "cub200")
    assert isinstance(result.spec, ProbeSpec)
    assert (result.spec.split, result.spec.held_out, result.score.n) == ("official", 0.1, 3 * TEST)
    assert (result.spec.select, result.spec.epoch) == ("held_out", "best")
    assert result.flags == ("subset", "limited")
    assert result.dataset.test_counts == (TEST,) * 3
    shown = capfd.readouterr()
    assert "cub200:probe held-out best on test" in shown.out
    assert "rate and epoch picked on a held-out part of train" in shown.err
    assert "18 of 5994 train images and 12 of 5794 test images" in shown.err


def test_the_choice_of_the_paper_has_a_column_of_its_own(
    birds: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (result,) = probed(birds, tmp_path / "a", "-t", "cub200", "--set", "probe.select=test")
    assert str(result.column) == "cub200:probe 32px"
    assert isinstance(result.spec, ProbeSpec)
    assert result.spec == ProbeSpec(image=result.spec.image, epochs=3, held_out=0.1)
    shown = capfd.readouterr()
    assert "cub200:probe lr held out" in shown.out
    assert "picked on the test images as SEAL reports" in shown.err
    older = ("--set", "probe.select=held_out", "--set", "probe.epoch=last")
    (result,) = probed(birds, tmp_path / "b", "-t", "cub200", *older)
    assert str(result.column) == "cub200:probe 32px lr-held-out"


def test_classes_of_other_sizes_have_balanced_accuracy_beside(
    birds: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    images = birds / "CUB_200_2011" / "images"
    smallest = sorted(images.iterdir())[0]
    for file in sorted(smallest.iterdir())[5:]:
        file.unlink()
    (result,) = probed(birds, tmp_path / "a", "-t", f"folder:{images}")
    assert result.dataset.test_counts == (1, 2, 2)
    assert result.by_class is not None
    assert result.by_class.largest_class == 0.4
    (row,) = fsbench.load_results(tmp_path / "a").to_frame().to_dict("records")
    assert row["top1"] == row["accuracy"] == result.score.mean
    assert row["balanced_accuracy"] == result.by_class.balanced_accuracy.mean
    shown = capfd.readouterr().out
    assert "probe held-out balanced accuracy" in shown
    assert "probe held-out largest class" in shown
    balanced = ("--set", "probe.score=balanced_accuracy")
    (result,) = probed(birds, tmp_path / "b", "-t", f"folder:{images}", *balanced)
    assert str(result.column).endswith(":probe 32px held-out balanced")
    assert result.by_class is not None
    assert result.score == result.by_class.balanced_accuracy


@pytest.mark.parametrize(
    ("task", "score"),
    [
        ("isic:probe", "balanced_accuracy"),
        ("isic:knn", "balanced_accuracy"),
        ("eurosat:probe", "accuracy"),
        ("dogs:knn", "accuracy"),
        ("folder:x:probe", "accuracy"),
    ],
)
def test_the_metric_of_a_data_set_is_the_score_of_its_probes(task: str, score: str) -> None:
    spec = EvaluationRequest(()).spec(TaskId.parse(task), 224)
    assert spec.score == score
    assert ("balanced" in spec.variant) == (score == "balanced_accuracy")


def test_neighbours_find_what_brightness_tells(birds: Path, tmp_path: Path) -> None:
    probes = probed(birds, tmp_path / "a", "-t", "cub200:knn", "--set", "probe.k=3")
    (result,) = probes
    assert isinstance(result.spec, KnnSpec)
    assert (result.spec.k, result.spec.split) == (3, "official")
    assert result.flags == ("subset",), "a limit changes nothing"
    assert result.score.mean > 0.5


def test_random_views_are_cached_and_change_what_is_learned(birds: Path, tmp_path: Path) -> None:
    def curve(name: str, *more: str) -> list[list[float]]:
        out = tmp_path / name
        (result,) = probed(birds, out, "-t", "cub200", *more)
        assert isinstance(result.spec, ProbeSpec)
        assert name in " ".join(result.spec.variant) or name == "none"
        return probe_records(out).curve.tolist()

    views = curve("views-3", "--set", "probe.views=3")
    cached = list((birds.parent / "cache" / "features").glob("*/array.npy"))
    assert len(cached) == 4, "three views and the centre crops"
    assert views not in (curve("views-1", "--set", "probe.views=1"), curve("none"))


def test_a_derived_split_chooses_alike(birds: Path, tmp_path: Path) -> None:
    images = birds / "CUB_200_2011" / "images"
    (result,) = probed(birds, tmp_path / "a", "-t", f"folder:{images}")
    assert isinstance(result.spec, ProbeSpec)
    assert (result.spec.split, result.spec.held_out) == ("derived_80_20", 0.1)
    assert str(result.column).endswith(":probe 32px held-out")
    assert "beside" in result.details
    select = ("--set", "probe.select=test", "--set", "probe.schedule=cosine")
    (result,) = probed(birds, tmp_path / "b", "-t", f"folder:{images}", *select)
    assert str(result.column).endswith(":probe 32px cosine")
    assert isinstance(result.spec, ProbeSpec)
    assert result.spec.held_out is None
    assert "beside" not in result.details
