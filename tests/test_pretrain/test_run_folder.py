"""A run folder belongs to one recipe, one data set and one process at a time."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.pretrain import EASY, lines, source, tiny, trainer

from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from pretrain.recipes.plan import Plan, TrainingClock
from pretrain.recipes.recipe import META
from pretrain.training import run_folder
from pretrain.training.loop import Trainer, train_recipe
from pretrain.training.run_folder import summarize_rounds


def test_another_recipe_is_refused_naming_the_fields(tmp_path: Path) -> None:
    train_recipe(tiny("seal"), source(), tmp_path)
    before = (tmp_path / "run.json").read_bytes()
    other = tiny("seal", "lr=0.125", "seal.ascent_factor=0.5")
    with pytest.raises(UsageError) as caught:
        train_recipe(other, source(), tmp_path)
    text = str(caught.value)
    assert "recipe.lr 0.05 -> 0.125" in text
    assert "recipe.methods.seal.ascent_factor 0.1 -> 0.5" in text
    assert "momentum" not in text
    assert str(tmp_path) in text
    assert (tmp_path / "run.json").read_bytes() == before


def test_other_data_and_a_corrupt_identity_are_refused(tmp_path: Path) -> None:
    train_recipe(tiny("normal"), source(), tmp_path)
    changed = replace(source(), fingerprint="1" * 64)
    with pytest.raises(UsageError, match="source_fingerprint"):
        train_recipe(tiny("normal"), changed, tmp_path)
    (tmp_path / "recipe.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"recipe\.json is corrupt"):
        train_recipe(tiny("normal"), source(), tmp_path)


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    recipe = tiny("normal")
    with (
        run_folder.claim_folder(tmp_path, recipe, source()),
        pytest.raises(FsbenchError, match="another process"),
        run_folder.claim_folder(tmp_path, recipe, source()),
    ):
        pass


def test_the_journal_is_cut_back_to_where_it_was(tmp_path: Path) -> None:
    journal = run_folder.RunLogs(tmp_path)
    journal.append("log.jsonl", {"step": 1})
    there = journal.positions()
    journal.append("log.jsonl", {"step": 2})
    journal.append("rewrites.jsonl", {"step": 2})
    journal.rewind(there)
    assert [json.loads(x) for x in (tmp_path / "log.jsonl").read_text().splitlines()] == [
        {"step": 1}
    ]
    assert (tmp_path / "rewrites.jsonl").read_text() == ""


def row(round_: int, step: int, train: float | None, val: float | None = None) -> dict[str, Any]:
    return {
        "stage": round_ // 2,
        "round": round_,
        "step": step,
        "train_accuracy": train,
        "val_accuracy": val,
    }


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
    train_recipe(tiny("welsr", *EASY, "validate_every=100"), source(), tmp_path)
    log, record = lines(tmp_path), json.loads((tmp_path / "run.json").read_text())
    assert record["rounds"] == summarize_rounds(log)
    assert record["steps"] == sum(r["steps"] for r in record["rounds"]) < 2 * 12 * 5
    rounds = [[x for x in log if x["round"] == number] for number in range(2)]
    for epochs in rounds:
        trained = [x["train_accuracy"] for x in epochs]
        assert trained[-1] >= 0.5
        assert all(accuracy < 0.5 for accuracy in trained[:-1])
        assert epochs[-1]["val_accuracy"] is not None
    assert len(rounds[0]) > 1
    (rewrite,) = lines(tmp_path, "rewrites.jsonl")
    assert (rewrite["round"], rewrite["step"]) == (1, rounds[0][-1]["step"])


def test_patience_counts_on_after_a_resume(tmp_path: Path) -> None:
    """Two epochs in a row are needed: a checkpoint between them keeps the first."""
    recipe = tiny("welsr", *EASY, "plan.stop_patience=2")
    train_recipe(recipe, source(), tmp_path / "whole")
    made = trainer(recipe, tmp_path / "parts")
    while made.ctx.clock.converged < 1:
        made._epoch(lambda images: None)
    made._save()
    again = trainer(recipe, tmp_path / "parts")
    assert again.ctx.clock.converged == 1
    again.run()
    whole, parts = (json.loads((tmp_path / p / "run.json").read_text()) for p in ("whole", "parts"))
    assert parts["rounds"] == whole["rounds"]
    assert parts["weights_hash"] == whole["weights_hash"]


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


def test_every_method_has_the_same_rule() -> None:
    """Only the clock knows it, and only the loop tells the clock; meta-learners have none."""
    from pretrain import METHODS

    for name in set(METHODS.names()) - META:
        recipe = tiny(name, "plan.stop_accuracy=1", "plan.stop_patience=4")
        assert TrainingClock(recipe.plan, epoch=1, converged=4).last_epoch, name
    assert "record_accuracy" in Trainer._close_epoch.__code__.co_names


def test_test_images_are_scored_once_at_the_end_and_change_no_weight(tmp_path: Path) -> None:
    tested = replace(source(), test=source().train)
    for name, of in (("tested", tested), ("plain", source())):
        train_recipe(tiny("normal"), of, tmp_path / name)
    record, plain = (
        json.loads((tmp_path / n / "run.json").read_text()) for n in ("tested", "plain")
    )
    assert (record["test_images"], "test_accuracy" in plain) == (40, False)
    assert record["weights_hash"] == plain["weights_hash"]
    assert record["source_accuracy"] == plain["source_accuracy"]
    # the images of training, scored as validation images would be
    train_recipe(tiny("normal"), replace(source(), val=source().train), tmp_path / "val")
    again = json.loads((tmp_path / "val" / "run.json").read_text())
    assert record["test_accuracy"] == again["source_accuracy"]
