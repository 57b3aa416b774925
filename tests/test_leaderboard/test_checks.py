"""One hostile or careless submission per rule; each is refused with its own code, unwritten."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import fakes, methods
from support.cases import read_cases
from support.fakes import DECLARATION
from support.forged import flipped, put, rewrite

from fsbench.api.submit import submit
from fsbench.core.errors import ValidationFailed
from fsbench.results.verification import OUTCOME_RULES
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.rules import board as board_rules
from leaderboard.rules import changes, submission
from leaderboard.rules.submission import check_submissions, resolve_datasets
from leaderboard.store import Board
from leaderboard.submission import read_submissions


def board(folder: Path, columns: tuple[Column, ...] | None = None, **fields: Any) -> Board:
    return Board(folder / "board", BoardFile(name="b", columns=columns, **fields))


def codes(results: Path, on: Board | None = None, **declared: object) -> set[str]:
    """Return the codes of all problems, by default on a free board."""
    submissions = read_submissions(results, DECLARATION.model_copy(update=declared))
    return {problem.code for problem in check_submissions(submissions, on or board(results.parent))}


def find_model(results: Path) -> Path:
    """Return the folder of the only model."""
    return next(results.rglob("entry.json")).parent


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, set()),
        ({"seconds": 77.0, "peak_memory_bytes": 3}, set()),
        ({"flops": 7}, {"backbone"}),
        ({"lr": 0.2}, {"backbone"}),
    ],
)
def test_results_of_a_network_are_of_one_training(
    change: dict[str, float], expected: set[str], results: Path
) -> None:
    """A run may be repeated, on another machine too: its costs there are no contradiction."""
    trained, other = methods.facts("seal"), methods.facts("seal", **change)
    fields = {"training": other.training, "recipe_digest": other.recipe_digest}
    for shots, backbone in ((1, trained), (5, trained.model_copy(update=fields))):
        fakes.write(results, shots=shots, backbone=backbone)
    assert codes(results) == expected
    if not expected:
        (read,) = read_submissions(results, DECLARATION)
        assert len({loaded.result.backbone.model_dump_json() for loaded in read.loaded}) == 1


def test_too_many_episodes(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "MAX_DRAWS", 39 * 10_156)
    fakes.write(results)
    assert codes(results) == {"size"}


def write_all(results: Path) -> None:
    for shots in (1, 5):
        fakes.write(results, shots=shots)
    fakes.write_probe(results)


def write_twice(results: Path) -> None:
    for folder, accuracy in (("x", 0.5), ("y", 0.6)):
        fakes.write(results / folder, accuracy)


def write_also(results: Path, **changes: Any) -> None:
    """Write another result of the network with these changes."""
    fakes.write(results)
    fakes.write(results / "x", shots=5, **changes)


def write_groups(results: Path) -> None:
    """Results of one data set whose images belong together in two ways."""
    for folder, shots in (("1", 1), ("2", 5)):
        data = fakes.dataset().model_copy(update={"groups": folder * 64})
        fakes.write(results / folder, shots=shots, data=data)


def flip_bit(results: Path) -> None:
    fakes.write(results)
    path = next(results.rglob("outcomes-*"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def flip_query(results: Path) -> None:
    """The digest of the file of outcomes fits."""
    fakes.write(results)
    rewrite(find_model(results), lambda one: (one.result, flipped(1)(one.records)))


CARELESS: dict[str, tuple[set[str], Callable[[Path], object]]] = {
    "nothing wrong": (set(), write_all),
    "episodes picked by hand": ({"incomplete"}, lambda r: fakes.write(r, index=range(3, 43))),
    "an episode without end": (
        {"incomplete"}, lambda r: fakes.write(r, index=[0, 2**31 - 1])),
    "fewer images, no flag": (
        {"flags"}, lambda r: fakes.write(r, data=fakes.dataset("toy_tiles", ()))),
    "unknown data, no flag": ({"flags"}, lambda r: fakes.write(r, data=fakes.dataset("mine", ()))),
    "two results of one column": ({"duplicate"}, write_twice),
    "other features": (
        {"backbone"}, lambda r: write_also(r, backbone=fakes.facts(features="cls token"))),
    "other images": (
        {"images"},
        lambda r: write_also(r, data=fakes.dataset().model_copy(update={"fingerprint": "9" * 64}))),
    "other groups": ({"dataset", "images"}, write_groups),
    "no result": ({"unreadable"}, lambda r: (r.mkdir(), (r / "entry.json").write_text("{}"))),
    "a flipped bit": ({"unreadable"}, flip_bit),
    "a flipped query": ({"score"}, flip_query),
}  # fmt: skip


@pytest.mark.parametrize("name", CARELESS)
def test_a_careless_submission_has_the_code_of_its_rule(name: str, results: Path) -> None:
    expected, write = CARELESS[name]
    write(results)
    assert codes(results) == expected


def test_targets_seen(results: Path, tmp_path: Path) -> None:
    data = fakes.official("toy_tiles")
    fakes.write(results, data=data)
    official = board(tmp_path, (), official=True, version=1, date="2026-01-01")
    assert codes(results, official, targets_seen=("toy_tiles",)) == {"target-seen"}
    assert codes(results, targets_seen=("toy_tiles",)) == set()
    assert codes(results, pretraining_data=("Toy-Tiles",)) == {"undeclared"}
    trained = fakes.facts(pretraining_data=("toy_tiles",))
    fakes.write(tmp_path / "facts", data=data, backbone=trained)
    assert codes(tmp_path / "facts") == {"undeclared"}


@pytest.mark.parametrize(("target", "names"), read_cases("data")["targets"])
def test_targets_are_known_under_their_usual_names(target: str, names: tuple[str, ...]) -> None:
    assert resolve_datasets(names) == {target}


def test_board_columns_need_their_spec_and_images(results: Path, tmp_path: Path) -> None:
    column = identify_column(fakes.write(results))
    assert codes(results, board(tmp_path, columns=(column,))) == set()
    for change in ({"spec_digest": "1" * 64}, {"fingerprint": "2" * 64}):
        other = column.model_copy(update=change)
        assert codes(results, board(tmp_path, columns=(other,))) == {"column"}


def test_a_taken_name_in_any_case(results: Path, tmp_path: Path) -> None:
    fakes.write(results)
    submit(results, tmp_path / "board", DECLARATION)
    on = Board.open(tmp_path / "board")
    assert codes(results, on, name="ENTRY") == {"taken"}
    again = read_submissions(results, DECLARATION)
    assert check_submissions(again, on, replace=True) == []
    capitals = DECLARATION.model_copy(update={"name": "ENTRY"})
    with pytest.raises(ValidationFailed, match="already has an entry 'entry'"):
        submit(results, on.folder, capitals, replace=True)
    assert on.names() == ["entry"]


def test_all_problems_are_listed_and_nothing_is_written(results: Path, tmp_path: Path) -> None:
    fakes.write(results, index=range(3, 43))
    put("results.0.score.mean", 0.99)(find_model(results))
    fakes.write(tmp_path / "lost", shots=5)
    lost = find_model(tmp_path / "lost").rename(find_model(results).with_name("0" * 12))
    next(lost.glob("outcomes-*")).unlink()
    with pytest.raises(ValidationFailed) as caught:
        submit(results, tmp_path / "board", DECLARATION)
    for text in (
        "3 problems, nothing was written",
        "cannot be read: No such file",
        ":folder-blobs:5w1s/linear@ibm 32px n_query=5: the file says 99.00 ± ",
        "% over 40, its outcomes give 5",
        "40 episodes in 3-42, expected 0 to n - 1",
    ):
        assert text in str(caught.value)
    assert not (tmp_path / "board").exists()


def test_every_rule_says_what_it_demands() -> None:
    lists = (
        *(OUTCOME_RULES, submission.RESULT_RULES, submission.ENTRY_RULES, submission.BOARD_RULES),
        *(board_rules.FOLDER_RULES, board_rules.STORED_RULES),
        *(board_rules.BADGE_RULES, changes.CHANGE_RULES),
    )
    assert all(check.__doc__ and fix for rules in lists for _, fix, check in rules)
