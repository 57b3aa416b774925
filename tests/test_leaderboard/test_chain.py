"""The chain of an entry names what was changed, even where every hash below was made to fit."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import fakes
from support.fakes import DECLARATION

from fsbench.core.errors import ValidationFailed
from fsbench.results import episode_records, parquet
from fsbench.results.summary import digest_records, summarize
from fsbench.results.verification import read_cells
from leaderboard.store import Board
from leaderboard.submission.chain import LINKS, HashChain, build_chain, find_changes
from leaderboard.rules.submission import submit_results

Json = dict[str, Any]


@pytest.fixture
def board(tmp_path: Path) -> Path:
    fakes.write(tmp_path / "r")
    fakes.write_probe(tmp_path / "r")
    submit_results(tmp_path / "r", tmp_path / "board", DECLARATION)
    return tmp_path / "board"


def edit(file: Path, change: Callable[[Json], object]) -> None:
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))


def test_it_is_stored_and_each_step_covers_the_one_before(board: Path) -> None:
    stored = json.loads((board / "entry" / "entry.json").read_text())["chain"]
    episodic, probe = HashChain.model_validate(stored).cells
    result = next(r for r in read_cells(board) if r.result.manifest_hash).result
    assert episodic.weights == result.backbone.weights_hash
    assert episodic.data == result.dataset.identity
    assert episodic.manifest == result.manifest_hash
    assert episodic.spec == result.spec.digest()
    assert episodic.records == digest_records(episode_records(next(board.rglob("5w*.json"))))
    assert probe.manifest is None
    text = hashlib.sha256(b"folder-blobs/" + episodic.cell.split("/")[1].encode()).hexdigest()
    for link in ("weights", "data", "manifest", "spec", "records"):
        text = hashlib.sha256(f"{text} {link} {getattr(episodic, link)}".encode()).hexdigest()
    assert episodic.end == text
    whole = hashlib.sha256(f"{text}\n{probe.end}".encode()).hexdigest()
    assert stored["end"] == whole


@pytest.mark.parametrize("link", LINKS)
def test_a_changed_link_is_named(link: str, board: Path) -> None:
    cells = tuple(read_cells(board))
    stated = build_chain(cells)
    other = stated.cells[0].model_copy(update={link: "0" * 64})
    moved = stated.model_copy(update={"cells": (other, *stated.cells[1:])})
    changes = [str(p) for p in find_changes(moved, cells, "entry")]
    assert len(changes) == 2
    assert f"{other.cell}: {link}" in changes[0]
    assert ": end" in changes[1]


def test_outcomes_with_digest_and_score_made_to_fit(board: Path) -> None:
    file = next(board.rglob("5w*.json"))
    records = episode_records(file)
    records = replace(records, correct=np.ones_like(records.correct))
    parquet.write_records(file.with_suffix(".parquet"), records)
    score = summarize(records, fakes.episodic()).score.model_dump()
    digest = digest_records(records)
    edit(file, lambda data: data.update(records_digest=digest, score=score))
    with pytest.raises(ValidationFailed, match=rf"{file.name}: records"):
        Board.open(board).entry("entry")


def test_a_cell_taken_away_or_added(board: Path) -> None:
    probe = next(board.rglob("probe*.json"))
    probe.unlink()
    with pytest.raises(ValidationFailed, match=rf"{probe.name}: found no such result"):
        Board.open(board).entry("entry")
    fakes.write(board / "entry", shots=5)
    with pytest.raises(ValidationFailed, match=r"5w5s.*found an additional result"):
        Board.open(board).entry("entry")


def test_an_entry_of_before_still_reads(board: Path) -> None:
    edit(board / "entry" / "entry.json", lambda data: data.pop("chain"))
    entry = Board.open(board).entry("entry")
    assert entry.file.chain is None
    assert "chain" not in entry.file.model_dump()
