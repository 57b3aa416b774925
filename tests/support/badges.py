"""Badges as `fsbench leaderboard verify` would have written them, and SSH keys that sign them."""

import json
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fsbench.api.verify import Sample, compare_episodes
from fsbench.core.io import write_record
from fsbench.core.records import EpisodeRecords
from fsbench.results import provenance
from leaderboard import badges
from leaderboard.badges import Badge
from leaderboard.store import Board

needs_ssh_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen (OpenSSH) is not installed"
)


def make_badge(
    board: Path,
    name: str,
    *,
    columns: Collection[str] | None = None,
    n: int = 30,
    seed: int = 0,
    flipped: int = 0,
    date: str = "2026-01-02T03:04:05+00:00",
    **environment: str,
) -> Badge:
    """A badge of these columns of the first network; flips are those of the first column."""
    entry = Board.open(board).entry(name)
    network = entry.networks[0]
    results = {str(loaded.result.column): loaded for loaded in network.loaded}
    made = network.loaded[0].result.provenance
    here = provenance.environment_of(made) | environment
    episodic = {c: r for c, r in results.items() if isinstance(r.records, EpisodeRecords)}
    chosen = sorted(columns or episodic)
    checks = []
    for column in chosen:
        loaded, records = results[column], results[column].records
        assert isinstance(records, EpisodeRecords)
        drawn = badges.draw_episodes(loaded, n, entry.digest, seed)
        sample = Sample(loaded, records, loaded.result.spec, loaded.result.column.task, drawn)
        recomputed = lose_queries(records, flipped if column == chosen[0] else 0)
        checks.append(compare_episodes(sample, recomputed, here))
    return Badge(
        entry=name,
        entry_digest=entry.digest,
        weights=network.facts.identity,
        date=date,
        environment={**here, "fsbench": "0", "commit": "none"},
        seed=seed,
        checks=tuple(checks),
        not_verified=tuple(sorted(results.keys() - set(chosen))),
    )


def lose_queries(records: EpisodeRecords, n: int) -> EpisodeRecords:
    """Return the outcomes with the first right query of each of the first n episodes wrong."""
    correct = records.correct.copy()
    for episode in correct[:n]:
        episode.reshape(-1)[episode.argmax()] = False
    return replace(records, correct=correct)


def add_badge(board: Path, name: str = "entry", key: Path | None = None, **changes: Any) -> Path:
    """The file of a badge in an entry, signed where there is a key; changes: as in `make_badge`."""
    return badges.write_badge(board / name, make_badge(board, name, **changes), key)


def make_key(folder: Path, name: str = "key") -> Path:
    """A new SSH key without passphrase."""
    path = folder / name
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@here", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def allow_signer(board: Path, key: Path) -> None:
    """Let board.json list this key as the only signer."""
    public = key.with_suffix(".pub").read_text().strip()
    file = Board.open(board).file.model_copy(update={"signers": (public,)})
    write_record(board / "board.json", file)
    assert json.loads((board / "board.json").read_text())["signers"] == [public]
