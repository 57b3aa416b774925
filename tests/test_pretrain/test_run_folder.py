"""A run folder belongs to one recipe, one data set and one process at a time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.pretrain import EASY, lines, record, source, tiny, train

from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from pretrain.recipes.plan import Plan, TrainingClock
from pretrain.training import run_folder
from pretrain.training.run_folder import summarize_rounds


def test_another_recipe_is_refused_naming_the_fields(tmp_path: Path) -> None:
    train(tmp_path, "seal")
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(UsageError) as caught:
        train(tmp_path, "seal", "lr=0.125", "seal.ascent_factor=0.5")
    text = str(caught.value)
    assert "recipe.lr 0.05 -> 0.125" in text
    assert "recipe.methods.seal.ascent_factor 0.007 -> 0.5" in text
    assert "momentum" not in text
    assert str(tmp_path) in text
    assert (tmp_path / "run.json").read_bytes() == before


def test_other_data_and_a_corrupt_identity_are_refused(tmp_path: Path) -> None:
    train(tmp_path, "normal")
    with pytest.raises(UsageError, match="source_fingerprint"):
        train(tmp_path, "normal", data=replace(source(), fingerprint="1" * 64))
    (tmp_path / "recipe.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"recipe\.json is corrupt"):
        train(tmp_path, "normal")


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    recipe = tiny("normal")
    with (
        run_folder.claim_folder(tmp_path, recipe, source()),
        pytest.raises(FsbenchError, match="another process"),
        run_folder.claim_folder(tmp_path, recipe, source()),
    ):
        pass


def row(round_: int, step: int, fit: float | None, val: float | None = None) -> dict[str, Any]:
    position = {"stage": round_ // 2, "round": round_, "step": step}
    return position | {"train_accuracy": fit, "val_accuracy": val}


def test_rounds_by_hand() -> None:
    log = [
        row(0, 5, 0.9), row(0, 10, 1.0), row(0, 15, 1.0, 0.5),
        row(1, 20, 1.0, 0.6),
        row(2, 25, 0.5, 0.1), row(2, 30, 0.999, 0.7),
        row(3, 35, None, 0.8),
    ]  # fmt: skip
    rounds = summarize_rounds(log)
    assert [r["steps_to_fit"] for r in rounds] == [10, 5, None, None]
    assert [(r["epochs"], r["steps"]) for r in rounds] == [(3, 15), (1, 5), (2, 10), (1, 5)]
    assert [r["train_accuracy"] for r in rounds] == [1.0, 1.0, 0.999, None]
    assert [r["val_accuracy"] for r in rounds] == [0.5, 0.6, 0.7, 0.8]
    assert [(r["stage"], r["round"]) for r in rounds] == [(0, 0), (0, 1), (1, 2), (1, 3)]


def test_a_clock_moves_on_after_so_many_epochs_in_a_row() -> None:
    clock = TrainingClock(Plan(rounds=2, epochs=9, stop_accuracy=0.9, stop_patience=2))
    epochs = []
    for accuracy in (0.95, 0.5, 0.9, 1.0, 1.0, None, 1.0, 0.9):
        clock.record_accuracy(accuracy)
        epochs.append((clock.round, clock.epoch, clock.last_epoch))
        clock.next_epoch()
    assert [last for *_, last in epochs] == [False, False, False, True, False, False, False, True]
    assert [(r, e) for r, e, _ in epochs] == [(0, e) for e in range(4)] + [(1, e) for e in range(4)]
    assert clock.done
    endless = TrainingClock(Plan(rounds=1, epochs=3))
    endless.record_accuracy(1.0)
    assert not endless.last_epoch, "without a threshold rounds run to their end"


def test_a_converged_round_ends_for_its_methods_and_the_run_says_so(tmp_path: Path) -> None:
    """The early end is validated although validate_every would not, and the next round acts."""
    train(tmp_path, "welsr", *EASY, "validate_every=100")
    log, facts = lines(tmp_path), record(tmp_path)
    assert facts["rounds"] == summarize_rounds(log)
    assert facts["steps"] == sum(r["steps"] for r in facts["rounds"]) < 2 * 12 * 5
    rounds = [[x for x in log if x["round"] == number] for number in range(2)]
    for epochs in rounds:
        trained = [x["train_accuracy"] for x in epochs]
        assert trained[-1] >= 0.5
        assert all(accuracy < 0.5 for accuracy in trained[:-1])
        assert epochs[-1]["val_accuracy"] is not None
    assert len(rounds[0]) > 1
    (rewrite,) = lines(tmp_path, "rewrites.jsonl")
    assert (rewrite["round"], rewrite["step"]) == (1, rounds[0][-1]["step"])


@pytest.mark.parametrize(
    ("method", "fields", "reason"),
    [
        ("dsd", ("dsd.sparse_epochs=2",), "first 2 epochs, which dsd needs"),
        ("imp", ("imp.rewind_epoch=1",), "first 1 epochs, which imp needs"),
        ("seal", (), "first 1 epochs, which seal needs"),
        ("normal", ("schedule=single_cycle",), "single_cycle without its length"),
        ("maml", (), "maml measures no training accuracy"),
    ],
)
def test_what_an_early_end_would_cut_off_is_refused(
    method: str, fields: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        tiny(method, *fields, "plan.stop_accuracy=1")
    if method not in ("normal", "maml"):
        tiny(method, *fields, "plan.stop_accuracy=1", "plan.stop_patience=3")


def test_test_images_are_scored_once_at_the_end_and_change_no_weight(tmp_path: Path) -> None:
    """They are those of training here, scored as validation images would be."""
    images = source().train
    plain, tested, validated = (
        record(train(tmp_path / name, "normal", data=replace(source(), **parts)))
        for name, parts in (("plain", {}), ("tested", {"test": images}), ("val", {"val": images}))
    )
    assert (tested["test_images"], "test_accuracy" in plain) == (40, False)
    assert tested["weights_hash"] == plain["weights_hash"]
    assert tested["source_accuracy"] == plain["source_accuracy"]
    assert tested["test_accuracy"] == validated["source_accuracy"]
