"""Results of probes: which rate is the score, what stands beside it, and nearest neighbours."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import fakes
from support.reading import read

from fsbench.core import statistics
from fsbench.core.errors import ValidationFailed
from fsbench.core.records import ImageRecords, ProbeRecords
from fsbench.core.schema import Result
from fsbench.core.specs import ImageSpec, KnnSpec, ProbeSpec
from fsbench.results import summary
from fsbench.results.entry import write_entry
from fsbench.results.outcomes import digest_records
from fsbench.results.summary import scored_images
from fsbench.results.table import build_tables
from fsbench.results.verification import find_entries, read_loaded
from leaderboard.ranking.outcomes import extract_outcomes

SIZE = ImageSpec(input_size=32)
PLAIN = ProbeSpec(image=SIZE, epochs=3)
PUBLISHED = ProbeSpec(image=SIZE, epochs=3, held_out=0.1)
HONEST = ProbeSpec(image=SIZE, epochs=3, held_out=0.1, select="held_out")
NEIGHBOURS = KnnSpec(image=SIZE)
CHOSEN = ProbeSpec(image=SIZE, epochs=3, held_out=0.1, select="held_out", epoch="best")
BALANCED = KnnSpec(image=SIZE, score="balanced_accuracy")


def rows(*counts: int, n: int = 10) -> np.ndarray:
    """Of n test images the first ones are right."""
    return np.arange(n) < np.array(counts)[:, None]


def records(held_out: bool = True) -> ProbeRecords:
    """On test 0.1 is best (9, after epoch 2), at the end 0.001 (8); held out, 0.01 (6 at end)."""
    last, best = rows(4, 6, 8), rows(9, 7, 8)
    curve = np.array([[0.1, 0.9, 0.4], [0.7, 0.2, 0.6], [0.2, 0.3, 0.8]])
    accuracy = np.array([0.5, 0.75, 0.75]) if held_out else None
    return ProbeRecords(np.array([0.1, 0.01, 0.001]), curve, last, best, accuracy)


def by_epoch() -> ProbeRecords:
    """Held out, 0.01 is best after epoch 1, when 7 test images are right."""
    held_out = np.array([[0.5, 0.6, 0.4], [0.9, 0.7, 0.9], [0.1, 0.2, 0.3]])
    chosen = rows(9, 7, 8)
    block = records(held_out=False)
    return ProbeRecords(block.lr, block.curve, block.last, block.best, None, held_out, chosen)


def write(
    root: Path,
    spec: ProbeSpec | KnnSpec,
    block: ProbeRecords | ImageRecords,
    test_counts: tuple[int, ...] = (),
) -> Result:
    data = fakes.dataset().model_copy(update={"test_counts": test_counts})
    return fakes.store(root, spec, block, data=data)


RULES = [
    (PUBLISHED, records(), "probe 32px", (0.9, 0.1, 2), (0.6, 0.01, 3), (0.5, 0.75)),
    (HONEST, records(), "probe 32px lr-held-out", (0.6, 0.01, 3), (0.9, 0.1, 2), (0.5, 0.75)),
    (CHOSEN, by_epoch(), "probe 32px held-out", (0.7, 0.01, 1), (0.9, 0.1, 2), (0.6, 0.9)),
]
"""Spec, records, column; score, rate and epoch; those of the other rule; held out at two rates."""


@pytest.mark.parametrize(("spec", "block", "column", "score", "beside", "held_out"), RULES)
def test_the_spec_says_which_rule_is_the_score_and_the_other_stands_beside(
    spec: ProbeSpec,
    block: ProbeRecords,
    column: str,
    score: tuple[float, float, int],
    beside: tuple[float, float, int],
    held_out: tuple[float, float],
    tmp_path: Path,
) -> None:
    result = write(tmp_path, spec, block)
    details = result.details
    assert str(result.column) == f"folder-blobs:{column}"
    assert (result.score.mean, details["lr"], details["epoch"]) == score
    names = ("beside_mean", "beside_lr", "beside_epoch")
    assert tuple(details[name] for name in names) == beside
    right = np.arange(10) < round(10 * beside[0])
    assert details["beside_ci95"] == statistics.score(right.astype(float))[1]
    assert (details["held_out@0.1"], details["held_out@0.01"]) == held_out
    assert details["score"] == summary.CHOICE_RULES[summary.rule_of(spec)]
    assert details["beside"] == summary.CHOICE_RULES[summary.find_rule_beside(spec)]
    assert scored_images(block, spec).sum() == round(10 * score[0])
    assert read(tmp_path) == [result]


def test_without_a_held_out_part_there_is_no_other_rule(tmp_path: Path) -> None:
    result = write(tmp_path, PLAIN, records(held_out=False))
    names = ["score", "lr", "epoch"]
    names += [f"{kind}@{lr}" for lr in ("0.1", "0.01", "0.001") for kind in ("last", "best")]
    assert list(result.details) == names
    assert result.details["last@0.01"] == 0.6
    assert digest_records(records(held_out=False)) != digest_records(records())


@pytest.mark.parametrize(
    ("spec", "block", "message"),
    [
        (PUBLISHED, records(held_out=False), "other choices of the rate"),
        (PLAIN, records(), "other choices of the rate"),
        (CHOSEN, records(), "other choices of the rate"),
        (HONEST, by_epoch(), "other choices of the rate"),
        (CHOSEN, records(held_out=False), "other choices of the rate"),
        (CHOSEN, replace(by_epoch(), chosen=rows(9, 8, 8)), "curve of accuracies differs from the"),
    ],
)
def test_records_of_another_choice_are_refused(
    tmp_path: Path, spec: ProbeSpec, block: ProbeRecords, message: str
) -> None:
    write(tmp_path, spec, block)
    with pytest.raises(ValidationFailed, match=message):
        read(tmp_path)


UNEQUAL = (6, 0, 2, 1, 1, 0)
"""Test images of six classes: the first 7 of 10 are all of the first and half of the third."""


def test_both_scores_of_unequal_classes_are_in_results_and_tables(tmp_path: Path) -> None:
    result = write(tmp_path / "a", NEIGHBOURS, ImageRecords(rows(7)[0]), UNEQUAL)
    assert result.other is not None
    assert result.score.mean == 0.7
    assert result.other.mean == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    table = build_tables([result])[0]
    assert {row[0]: row[1].split()[0] for row in table.rows[:4]} == {
        "folder-blobs:knn": "70.00",
        "folder-blobs:knn balanced accuracy": "37.50",
        "folder-blobs:knn largest class": "60.00",
        "source (in-domain)": "25.00",
    }
    assert "mean over the classes" in table.note
    official = write(tmp_path / "b", BALANCED, ImageRecords(rows(7)[0]), UNEQUAL)
    assert (official.score, official.other) == (result.other, result.score)
    shown = {row[0]: row[1].split()[0] for row in build_tables([official])[0].rows[:3]}
    assert shown["folder-blobs:knn balanced"] == "37.50"
    assert shown["folder-blobs:knn balanced top-1"] == "70.00"
    assert read(tmp_path) == [result, official]


def test_equal_classes_have_one_score(tmp_path: Path) -> None:
    unknown = write(tmp_path / "a", NEIGHBOURS, ImageRecords(rows(6)[0]))
    assert unknown.other is None
    assert not {"other", "test_counts"} & {*unknown.model_dump(), *unknown.dataset.model_dump()}
    even = write(tmp_path / "b", NEIGHBOURS, ImageRecords(rows(6, n=12)[0]), (2,) * 6)
    assert even.other is not None
    assert even.other.mean == even.score.mean == 0.5
    assert [row[0] for row in build_tables([even])[0].rows[:-1]] == ["folder-blobs:knn 32px"]


@pytest.mark.parametrize(
    ("right", "one_class"),
    [(range(6), True), ((6, 7), True), ((9,), True), ((0, 9), False), ((0, 1, 2, 6), False)],
)
def test_one_class_everywhere_is_named(
    tmp_path: Path, right: tuple[int, ...], one_class: bool
) -> None:
    block = ImageRecords(np.isin(np.arange(10), list(right)))
    result = write(tmp_path, NEIGHBOURS, block, UNEQUAL)
    note = build_tables([result])[0].note
    assert ("one class is predicted for every test image" in note) == one_class


@pytest.mark.parametrize(
    ("spec", "counts"),
    [(BALANCED, ()), (BALANCED, (6, 0, 2, 1, 1)), (NEIGHBOURS, (6, 0, 2, 1, 2, 0)),
     (NEIGHBOURS, (10, 0, 0, 0, 1, 0))],
)  # fmt: skip
def test_test_counts_that_do_not_fit_are_refused(
    tmp_path: Path, spec: KnnSpec, counts: tuple[int, ...]
) -> None:
    result = write(tmp_path, NEIGHBOURS, ImageRecords(rows(7)[0]), UNEQUAL)
    (folder,) = find_entries(tmp_path)
    data = result.dataset.model_copy(update={"test_counts": counts})
    changed = result.model_copy(update={"dataset": data, "spec": spec})
    write_entry(folder, [(changed, ImageRecords(rows(7)[0]))])
    with pytest.raises(ValidationFailed, match=r"the counts of test images sum to .*, not to 10"):
        read(tmp_path)


def test_outcomes_of_balanced_accuracy_average_to_it(tmp_path: Path) -> None:
    right = np.isin(np.arange(10), [0, 1, 2, 6, 9])
    result = write(tmp_path, BALANCED, ImageRecords(right), UNEQUAL)
    (loaded,) = read_loaded(tmp_path)
    outcomes = extract_outcomes(loaded)
    assert outcomes.values.mean() == pytest.approx(result.score.mean, abs=1e-9)
    assert outcomes.unweighted.right.tolist() == right.tolist()
    assert outcomes.unweighted.out_of == 1
    plain = write(tmp_path / "b", NEIGHBOURS, ImageRecords(right), UNEQUAL)
    (loaded,) = read_loaded(tmp_path / "b")
    assert extract_outcomes(loaded).values.mean() == plain.score.mean


def test_both_rules_are_rows_of_the_table_with_the_source_accuracy(tmp_path: Path) -> None:
    results = [write(tmp_path, PUBLISHED, records()), write(tmp_path, HONEST, records())]
    results.append(write(tmp_path, NEIGHBOURS, ImageRecords(rows(7)[0])))
    table = build_tables(results)[0]
    shown = {row[0]: row[1].split()[0] for row in table.rows}
    assert table.title.startswith("results: 32px")
    assert shown == {
        "folder-blobs:knn": "70.00",
        "folder-blobs:probe": "90.00",
        "folder-blobs:probe lr held out": "60.00",
        "folder-blobs:probe lr-held-out": "60.00",
        "folder-blobs:probe lr-held-out best on test": "90.00",
        "source (in-domain)": "25.00",
    }
    for text in (
        "probe: best learning rate and epoch, picked on the test images as SEAL",
        "lr held out: learning rate picked on a held-out part of train, last epoch",
        "knn: k nearest training images vote",
    ):
        assert text in table.note
    assert "±" in table.rows[2][1]
    table = build_tables([write(tmp_path, PLAIN, records(False))])[0]
    assert [row[0] for row in table.rows[:-1]] == ["folder-blobs:probe 32px"]
    assert "held" not in table.note
