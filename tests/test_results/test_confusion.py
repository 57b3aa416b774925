"""Which classes are taken for which: stored predictions, their counts, table and JSON."""

from pathlib import Path

import numpy as np
import pytest
import torch
from support import fakes
from support.cli import CommandLine

import fsbench
from fsbench.core.errors import UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.data.episodes import EpisodeSampler
from fsbench.results.assembly import merge
from fsbench.results.verification import read_one_result
from protocols.heads.scoring import make_episode_records

SPEC, DATA = fakes.episodic(), fakes.dataset()
SAMPLER = EpisodeSampler(
    SPEC.episode, DATA.name, dict(zip(DATA.class_ids, DATA.class_counts, strict=True))
)


def write(root: Path, index: range = range(40)) -> Path:
    records = fakes.episodes(SPEC, DATA, index, 0.6)
    fakes.store(root, SPEC, fakes.predict(records))
    return root


def test_heads_store_what_each_query_is_taken_for() -> None:
    episodes = [SAMPLER.episode(i) for i in range(3)]
    logits = torch.rand(3, 25, 5, generator=torch.Generator().manual_seed(0))
    records = make_episode_records(episodes, logits, n_query=5)
    assert records.predicted is not None
    assert records.predicted.tolist() == np.argmax(logits.numpy(), axis=2).tolist()
    many = make_episode_records(episodes, torch.rand(3, 257, 257), n_query=1)
    assert many.predicted is None


def test_counts_of_merged_parts_are_those_of_the_episodes_one_by_one(
    cli: CommandLine, tmp_path: Path
) -> None:
    parts = [write(tmp_path / "a", range(25)), write(tmp_path / "b", range(20, 40))]
    merge(parts, tmp_path / "out")
    records = read_one_result(tmp_path / "out").records
    assert isinstance(records, EpisodeRecords)
    expected, possible = np.zeros((6, 6), int), np.zeros((6, 6), int)
    for i, correct in zip(records.index.tolist(), records.correct, strict=True):
        classes = SAMPLER.episode(i).class_ids.tolist()
        for c, right in zip(classes, correct, strict=True):
            after = classes[(classes.index(c) + 1) % 5]
            expected[c, c] += right.sum()
            expected[c, after] += 5 - right.sum()
            possible[c, classes] += 5
    (confusion,) = fsbench.load_results(tmp_path / "out").confusions()
    assert confusion.counts.tolist() == expected.tolist()
    assert confusion.possible.tolist() == possible.tolist()
    (shown,) = cli.json("show", tmp_path / "out", "--confusion")
    assert (shown["counts"], shown["possible"]) == (expected.tolist(), possible.tolist())
    assert shown["classes"] == [*DATA.class_names]
    shares = expected / possible
    worst = int(shares.diagonal().argmin())
    (table,) = confusion.tables()
    assert table.rows[0][:2] == (DATA.class_names[worst], f"{100 * shares[worst, worst]:.1f}")
    other = max((c for c in range(6) if c != worst), key=lambda c: shares[worst, c])
    first = f"{DATA.class_names[other]} {100 * shares[worst, other]:.1f}, "
    assert table.rows[0][2].startswith(first)
    assert np.array_equal(confusion.shares, shares)
    assert table.complete.rows[2][3] == f"{100 * shares[2, 2]:.1f}"


def test_a_board_stores_no_predictions(tmp_path: Path) -> None:
    from fsbench.api.submit import submit

    plain = tmp_path / "plain"
    fakes.write(plain)
    for folder in (plain, write(tmp_path / "predicted")):
        submit(folder, tmp_path / f"board-{folder.name}", fakes.DECLARATION)
    one, other = (next(tmp_path.glob(f"board-{n}/*/outcomes-*")) for n in ("plain", "predicted"))
    assert one.read_bytes() == other.read_bytes()
    assert fakes.digests(plain) == fakes.digests(tmp_path / "predicted")


def test_results_without_predictions_are_left_out_or_refused(
    cli: CommandLine, tmp_path: Path
) -> None:
    fakes.write(tmp_path / "old", name="b")
    fakes.write_probe(tmp_path / "old", name="b")
    with pytest.raises(UsageError, match="no predicted classes") as error:
        fsbench.load_results(tmp_path / "old").confusions()
    assert "--overwrite" in str(error.value)
    done = cli("show", tmp_path / "old", write(tmp_path / "new"), "--confusion")
    assert "1 of 3 results hold predictions" in done.err
    assert done.out.count("confusion: ") == 1
