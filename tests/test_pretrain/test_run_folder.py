"""A run folder belongs to one recipe, one data set and one process at a time."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from support.pretrain import source, tiny

from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from pretrain.training import run_folder
from pretrain.training.loop import train_recipe


def test_another_recipe_is_refused_naming_the_fields(tmp_path: Path) -> None:
    train_recipe(tiny("seal"), source(), tmp_path)
    before = (tmp_path / "run.json").read_bytes()
    other = tiny("seal", "lr=0.125", "seal.ascent_factor=0.5")
    with pytest.raises(UsageError) as caught:
        train_recipe(other, source(), tmp_path)
    text = str(caught.value)
    assert "recipe.lr 0.05 -> 0.125" in text
    assert "recipe.methods.seal.ascent_factor 0.01 -> 0.5" in text
    assert "momentum" not in text
    assert str(tmp_path) in text
    assert (tmp_path / "run.json").read_bytes() == before


def test_other_data_are_refused(tmp_path: Path) -> None:
    train_recipe(tiny("normal"), source(), tmp_path)
    changed = dataclasses.replace(source(), fingerprint="1" * 64)
    with pytest.raises(UsageError, match="source_fingerprint"):
        train_recipe(tiny("normal"), changed, tmp_path)


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    recipe = tiny("normal")
    with (
        run_folder.claim_folder(tmp_path, recipe, source()),
        pytest.raises(FsbenchError, match="another process"),
        run_folder.claim_folder(tmp_path, recipe, source()),
    ):
        pass


def test_a_corrupt_identity_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"recipe\.json is corrupt"):
        train_recipe(tiny("normal"), source(), tmp_path)


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
