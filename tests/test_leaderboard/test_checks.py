"""One hostile or careless submission per rule; each is refused with its own code, unwritten."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support import methods as fakes_methods
from support.fakes import DECLARATION
from support.forged import edit, flipped, rewrite

from fsbench.api.submit import submit
from fsbench.core.errors import ValidationFailed
from fsbench.results.verification import OUTCOME_RULES
from leaderboard.intake.submission import read_submissions, resolve_datasets
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.rules import badge, changes, submission
from leaderboard.rules import board as board_rules
from leaderboard.rules.submission import check_submissions
from leaderboard.store import Board


def board(folder: Path, official: bool = False, columns: tuple[Column, ...] | None = None) -> Board:
    return Board(folder / "board", BoardFile(name="b", official=official, columns=columns))


def codes(results: Path, on: Board, **declared: object) -> set[str]:
    declaration = DECLARATION.model_copy(update=declared)
    return {p.code for p in check_submissions(read_submissions(results, declaration), on)}


def home(results: Path) -> Path:
    """The folder of the only model."""
    return next(results.rglob("entry.json")).parent


def test_a_sound_submission_has_no_problem(tmp_path: Path) -> None:
    results = tmp_path / "results"
    fakes.write(results)
    fakes.write(results, shots=5)
    fakes.write_probe(results)
    assert codes(results, board(tmp_path)) == set()


def test_an_official_cell_enters_an_official_board(tmp_path: Path) -> None:
    fakes.write(tmp_path / "results", data=fakes.official())
    assert codes(tmp_path / "results", board(tmp_path, official=True)) == set()


def test_official_boards_refuse_every_flag(tmp_path: Path) -> None:
    official = board(tmp_path, official=True)
    fewer = (30,) * len(fakes.official().class_ids)
    subset = fakes.official().model_copy(update={"class_counts": fewer, "flags": ("subset",)})
    for name, data, index in (
        ("custom", fakes.dataset(), range(40)),
        ("short", fakes.official(), range(39)),
        ("subset", subset, range(40)),
    ):
        fakes.write(tmp_path / name, data=data, index=index)
        assert codes(tmp_path / name, official) == {"flagged"}, name
        assert codes(tmp_path / name, board(tmp_path)) == set(), name
    fakes.write_probe(tmp_path / "derived", data=fakes.official())
    assert codes(tmp_path / "derived", official) == {"flagged"}


def line(**changes: object) -> Callable[[dict[str, Any]], object]:
    """Change a field of the only result."""
    return lambda content: content["results"][0].update(changes)


def part(name: str, **changes: object) -> Callable[[dict[str, Any]], object]:
    """Change a field of the only model, data set, spec or environment."""
    return lambda content: content[name][0].update(changes)


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("score", line(score={"mean": 0.99, "ci95": 0.1, "n": 40})),
        ("unreadable", lambda c: c.update(outcomes="0" * 64)),
        ("unreadable", part("specs", n_way=4)),
        ("manifest", line(manifest_hash="0" * 64)),
        ("manifest", part("datasets", class_counts=[31] * 6)),
        ("manifest", part("datasets", class_counts=[3] * 6)),
        ("flags", line(flags=[])),
        ("unreadable", lambda c: c.update(extra=1)),
        ("unreadable", line(model=1)),
        ("unreadable", line(score={"mean": float("nan"), "ci95": 0.1, "n": 40})),
        ("unreadable", part("models", architecture="\x1b[2Jgone")),
        ("unreadable", part("environments", command="x" * 5000)),
        ("unreadable", part("models", ref="abc\u202e")),
        ("py-reference", part("models", ref="py:a:b", source="py")),
        ("py-reference", part("models", ref="a.pth@py:a:b", source="file")),
        ("py-reference", part("models", architecture="py:a:b", source="file")),
        ("unreadable", part("datasets", class_counts=[10**7] * 6)),
        ("unreadable", part("datasets", class_ids=[0, 1, 2, 3, 4, 10**19])),
        ("unreadable", part("datasets", class_ids=[-(10**30), 1, 2, 3, 4, 5])),
        ("unreadable", line(column="folder-blobs:5w5s/linear@ibm 32px")),
        ("unreadable", line(column="<script>")),
    ],
)
def test_edited_results(
    code: str, change: Callable[[dict[str, Any]], object], tmp_path: Path
) -> None:
    fakes.write(tmp_path / "results")
    edit(home(tmp_path / "results"), change)
    assert code in codes(tmp_path / "results", board(tmp_path))


def test_cells_tell_one_training(tmp_path: Path) -> None:
    """A result that was made before training was recorded stands beside one that knows it."""
    trained = fakes_methods.facts("seal")
    changes: dict[str, dict[str, float]] = {
        "same": {},
        "repeated": {"seconds": 77.0, "peak_memory_bytes": 3},
        "costs": {"flops": 7},
        "recipe": {"lr": 0.2},
    }
    for name, change in changes.items():
        other = fakes_methods.facts("seal", **change)
        fields = {"training": other.training, "recipe_digest": other.recipe_digest}
        second = trained.model_copy(update=fields)
        for shots, backbone in ((1, trained), (5, second)):
            fakes.write(tmp_path / name, shots=shots, backbone=backbone)
        expected = set() if name in {"same", "repeated"} else {"backbone"}
        assert codes(tmp_path / name, board(tmp_path)) == expected, name
    older = trained.model_copy(update={"training": None})
    for shots, backbone in ((1, trained), (5, older)):
        fakes.write(tmp_path / "older", shots=shots, backbone=backbone)
    assert codes(tmp_path / "older", board(tmp_path)) == set()
    (read,) = read_submissions(tmp_path / "same", DECLARATION)
    first = read.cells[0].result.backbone.training
    assert first is not None
    assert first.view.seed == 0  # from now on this training remembers a value, and no other does
    assert {p.code for p in check_submissions([read], board(tmp_path))} == set()


def test_episodes_picked_by_hand(tmp_path: Path) -> None:
    """Forty good episodes out of many are no evaluation."""
    fakes.write(tmp_path / "results", index=range(3, 43))
    assert codes(tmp_path / "results", board(tmp_path)) == {"incomplete"}


def test_an_episode_number_without_end_costs_no_memory(tmp_path: Path) -> None:
    fakes.write(tmp_path / "results", index=[0, 2**31 - 1])
    assert codes(tmp_path / "results", board(tmp_path)) == {"incomplete"}


def test_too_many_episodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderboard.rules.submission.MAX_DRAWS", 39 * 10_156)
    fakes.write(tmp_path / "results")
    assert codes(tmp_path / "results", board(tmp_path)) == {"size"}


def test_hidden_subset(tmp_path: Path) -> None:
    """The official name with other counts and no flag."""
    data = fakes.dataset("toy_tiles", ())
    fakes.write(tmp_path / "results", data=data)
    assert codes(tmp_path / "results", board(tmp_path)) == {"flags"}


def test_unknown_data_set_without_its_flag(tmp_path: Path) -> None:
    fakes.write(tmp_path / "results", data=fakes.dataset("eurosat-easy", ()))
    assert codes(tmp_path / "results", board(tmp_path)) == {"flags"}


def test_two_results_of_one_column(tmp_path: Path) -> None:
    for folder, accuracy in (("x", 0.5), ("y", 0.6)):
        fakes.write(tmp_path / "results" / folder, accuracy)
    assert codes(tmp_path / "results", board(tmp_path)) == {"duplicate"}


def test_cells_of_other_features(tmp_path: Path) -> None:
    fakes.write(tmp_path / "results")
    fakes.write(tmp_path / "results" / "x", shots=5, backbone=fakes.facts(features="cls token"))
    assert "backbone" in codes(tmp_path / "results", board(tmp_path))


def test_cells_of_other_images(tmp_path: Path) -> None:
    fakes.write(tmp_path / "results")
    moved = fakes.dataset().model_copy(update={"fingerprint": "9" * 64})
    fakes.write(tmp_path / "results", shots=5, data=moved)
    assert codes(tmp_path / "results", board(tmp_path)) == {"images"}


def test_targets_seen(tmp_path: Path) -> None:
    results, data = tmp_path / "results", fakes.official("toy_tiles")
    fakes.write(results, data=data)
    official = board(tmp_path, official=True)
    assert codes(results, official, targets_seen=("toy_tiles",)) == {"target-seen"}
    assert codes(results, board(tmp_path), targets_seen=("toy_tiles",)) == set()
    assert codes(results, board(tmp_path), pretraining_data=("Toy-Tiles",)) == {"undeclared"}
    trained = fakes.facts(pretraining_data=("toy_tiles",))
    fakes.write(tmp_path / "facts", data=data, backbone=trained)
    assert codes(tmp_path / "facts", board(tmp_path)) == {"undeclared"}


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("isic", ("ISIC 2018", "HAM10000", "isic_2018", "HAM-10000 dataset")),
        ("cropdisease", ("Plant Village", "PlantVillage Dataset", "plant diseases")),
        ("eurosat", ("EuroSAT RGB", "Euro-SAT", "eurosat dataset")),
        ("chestx", ("ChestX-ray8", "ChestX-ray14", "NIH Chest X-rays", "NIH ChestX-ray14")),
        ("cub200", ("CUB 200 2011", "Caltech-UCSD Birds-200-2011")),
    ],
)
def test_targets_are_known_under_their_usual_names(target: str, names: tuple[str, ...]) -> None:
    for name in names:
        assert resolve_datasets([name]) == {target}
    assert resolve_datasets(["ImageNet 21k"]) == {"imagenet 21k"}


@pytest.mark.parametrize("name", ["..", ".hidden", "-x", "ünicode", "a" * 150])
def test_names_that_hurt(name: str, tmp_path: Path) -> None:
    fakes.write(tmp_path / "results")
    assert "name" in codes(tmp_path / "results", board(tmp_path), name=name)


def test_board_columns_need_their_spec_and_images(tmp_path: Path) -> None:
    results = tmp_path / "results"
    column = identify_column(fakes.write(results))
    assert codes(results, board(tmp_path, columns=(column,))) == set()
    for change in ({"spec_digest": "1" * 64}, {"fingerprint": "2" * 64}):
        other = column.model_copy(update=change)
        assert codes(results, board(tmp_path, columns=(other,))) == {"column"}


def test_a_taken_name_in_any_case(tmp_path: Path) -> None:
    fakes.write(tmp_path / "results")
    submit(tmp_path / "results", tmp_path / "board", DECLARATION)
    on = Board.open(tmp_path / "board")
    assert codes(tmp_path / "results", on, name="ENTRY") == {"taken"}
    again = read_submissions(tmp_path / "results", DECLARATION)
    assert check_submissions(again, on, replace=True) == []


def test_all_problems_are_listed_and_nothing_is_written(tmp_path: Path) -> None:
    results = tmp_path / "results"
    fakes.write(results, index=range(3, 43))
    edit(home(results), lambda c: c["results"][0]["score"].update(mean=0.99))
    fakes.write(tmp_path / "lost", shots=5)
    lost = home(tmp_path / "lost").rename(home(results).with_name("0" * 12))
    next(lost.glob("outcomes-*")).unlink()
    with pytest.raises(ValidationFailed) as caught:
        submit(results, tmp_path / "board", DECLARATION)
    text = str(caught.value)
    for words in (
        "cannot be read: No such file",
        ":folder-blobs:5w1s/linear@ibm 32px n_query=5: the file says 99.00 ± ",
        "% over 40, its outcomes give 5",
        "episodes 3-42, expected 0 to n - 1",
    ):
        assert words in text
    assert "3 problems, nothing was written" in text
    assert not (tmp_path / "board").exists()


def test_a_result_alone_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "entry.json").write_text("{}")
    assert codes(tmp_path / "results", board(tmp_path)) == {"unreadable"}


def test_every_rule_says_what_it_demands() -> None:
    lists = (
        *(OUTCOME_RULES, submission.RESULT_RULES, submission.ENTRY_RULES, submission.NEW_RULES),
        *(submission.BOARD_RULES, board_rules.FOLDER_RULES, board_rules.STORED_RULES),
        *(badge.BADGE_RULES, changes.CHANGE_RULES),
    )
    assert all(rule.check.__doc__ and rule.fix for rules in lists for rule in rules)


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    """In the file of outcomes, and where the digest of the file was made to fit."""
    for name in ("left", "made to fit"):
        fakes.write(tmp_path / name)
    one, two = home(tmp_path / "left"), home(tmp_path / "made to fit")
    path = next(one.glob("outcomes-*"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert codes(tmp_path / "left", board(tmp_path)) == {"unreadable"}
    rewrite(two, lambda loaded: (loaded.result, flipped(1)(loaded.records)))  # type: ignore[arg-type]
    assert codes(tmp_path / "made to fit", board(tmp_path)) == {"score"}
