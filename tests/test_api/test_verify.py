"""fsbench leaderboard verify through the real evaluation: honest entries pass, forged ones fail."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from support.badges import allow_signer, make_key, needs_ssh_keygen
from support.cli import CommandLine
from support.fakes import DECLARATION
from support.forged import flipped, forge

import fsbench
from fsbench.api.evaluate import TargetSets
from fsbench.api.options import VerifyOptions
from fsbench.api.recompute import recompute
from fsbench.api.submit import submit
from fsbench.api.verify import verify
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureStore
from fsbench.core.errors import CheckpointError, DataError, ValidationFailed
from fsbench.core.specs import EpisodeSpec
from fsbench.data import DataRoots, load_target
from fsbench.data.episodes import EpisodeSampler
from fsbench.results.outcomes import digest_records
from fsbench.results.verification import read_loaded
from leaderboard.badges import Badge, read_badges
from leaderboard.rules.board import inspect_board
from leaderboard.store import Board

MODEL = "fsbench/toy_resnet"
WORDS = ("-m", "fsbench/toy_resnet", "--random-init", "0")
TASKS = ("toy_tiles:5w1s/linear", "toy_tiles:5w1s/centroid")
CENTROID, LINEAR = (f"toy_tiles:5w1s/{name}@ibm 32px" for name in ("centroid", "linear"))


def make_board(folder: Path, cache: Path, tasks: tuple[str, ...], **machine: int) -> Path:
    """Evaluate 40 episodes of tasks and submit them; return the folder of the board."""
    where = {"threads": 1, "cache": cache, "output": folder / "results", **machine}
    chosen = {"random_init": 0, "input_size": 32, "episodes": 40, "progress": False}
    fsbench.evaluate(MODEL, tasks, **chosen, **where)
    submit(folder / "results", folder / "board", DECLARATION)
    return folder / "board"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a board of one honest entry and the features that it needs."""
    root = tmp_path_factory.mktemp("made")
    make_board(root, root / "cache", TASKS)
    return root


@pytest.fixture
def board(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "board", tmp_path / "board"))


def check(board: Path, made: Path, **options: Any) -> Badge:
    chosen = {"model": MODEL, "random_init": 0, "seed": 1, "cache": made / "cache", **options}
    return verify(VerifyOptions(entry="entry", board=board, **chosen))


def stored(board: Path) -> list[Path]:
    return sorted((board / "entry" / "badges").glob("*.json"))


def test_an_honest_entry_is_verified_bit_for_bit(board: Path, made: Path) -> None:
    badge = check(board, made)
    assert (badge.verdict, badge.not_verified) == ("verified", ())
    assert [str(compared.column) for compared in badge.checks] == [CENTROID, LINEAR]
    assert [len(compared.drawn) for compared in badge.checks] == [30, 30]
    assert str(badge).startswith(
        "verified 2 of 2 results (30 episodes each, a forged gain of 7.6 is found with 95 %), 20"
    ), badge  # by hand: (1 - .05 ^ (1 / 30)) (1 - .201) = .0759
    for compared in badge.checks:
        assert compared.allow_flips(compared.scored) == 0
        assert compared.scored.outcomes == 75 * compared.episodes
        assert compared.dense is not None
        assert compared.dense.outcomes > 75 * compared.episodes
    assert badge.environment["threads"] == "1"
    assert [stored for _, stored in read_badges(board / "entry")] == [badge]
    assert inspect_board(board).problems == []


KNN, DENSE = "toy_tiles:5w1s/knn", "toy_tiles:5w1s/centroid"


@pytest.mark.parametrize("task", [KNN, DENSE])
def test_images_of_the_drawn_episodes_alone_are_forwarded(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outcomes of dense queries need all images of a class, others support and queries alone."""
    board = make_board(tmp_path, tmp_path / "cache", (task,))
    forwarded, features = [], Backbone.features

    def count(backbone: Backbone, images: torch.Tensor) -> torch.Tensor:
        forwarded.append(int(images.flatten(1).any(dim=1).sum()))  # blocks are padded with black
        return features(backbone, images)

    monkeypatch.setattr(Backbone, "features", count)
    badge = check(board, tmp_path / "other", episodes=1)
    assert (badge.verdict, badge.checks[0].episodes) == ("verified", 1)
    dataset = load_target("toy_tiles", DataRoots.parse(()))
    sampler = EpisodeSampler.of(EpisodeSpec(), dataset)
    episode = sampler.episode(badge.checks[0].drawn[0])
    n_images = sum(len(dataset.by_class[c]) for c in episode.class_ids.tolist())
    n_images = n_images if task == DENSE else 5 * (1 + 15)
    assert sum(forwarded) == n_images < len(dataset)
    forwarded.clear()
    again = check(board, tmp_path, episodes=1)
    assert again.checks[0].episodes == 40, "whole blocks are free"
    assert sum(forwarded) == 0, "features are cached"
    monkeypatch.setattr(FeatureStore, "read_device", lambda store, request: "another GPU")
    assert check(board, tmp_path, episodes=1).verdict == "verified"
    assert sum(forwarded) == n_images, "features of another GPU verify nothing"


def test_a_batch_size_that_was_asked_for_is_kept(made: Path, tmp_path: Path) -> None:
    """Features depend on it, so it is part of the environment; other results do not mention it."""
    board = make_board(tmp_path, made / "cache", TASKS[1:], batch_size=7)
    badge = check(board, made)
    assert (badge.verdict, badge.environment["batch size"]) == ("verified", "7")
    other = check(board, made, batch_size=8)
    assert other.checks[0].differs == ("batch size: 7 -> 8",)
    script = recompute(Board.open(board).entry("entry"), "board")
    assert any("--batch-size=7" in line for line in script)
    assert '"batch_size": 7' not in (made / "board" / "entry" / "entry.json").read_text()


def test_the_printed_commands_give_the_results_again(
    board: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    monkeypatch.setenv("FSBENCH_CACHE", str(made / "cache"))
    monkeypatch.chdir(tmp_path)
    entry = Board.open(board).entry("entry")
    commands = [shlex.split(line) for line in recompute(entry, str(board))]
    for _, *arguments in (words for words in commands if words[0] == "fsbench"):
        cli(*arguments)
    again, before = (
        {one.result.task: digest_records(one.records) for one in loaded}
        for loaded in (read_loaded(tmp_path / "results"), entry.loaded)
    )
    assert again == before


def test_one_query_flipped_with_every_hash_made_to_fit(board: Path, made: Path) -> None:
    forge(board / "entry", "linear", flipped(1, episode=5))
    badge = check(board, made)
    assert badge.verdict == "failed"
    bad = [(str(c.column), c.scored.flipped, c.wrong) for c in badge.checks if c.scored.flipped]
    assert bad == [(LINEAR, 1, (5,))]
    assert check(board, made, tasks=("toy_tiles/centroid",)).verdict == "verified"
    assert len(stored(board)) == 2, "a failure is not outshone by a later success"


def test_in_another_environment_few_flips_are_tolerated(board: Path, made: Path) -> None:
    """Five flips of 3,000 move the mean by .17 points, by chance or on purpose."""
    forge(board / "entry", "linear", flipped(3), cpu_capability="NEON")
    badge = check(board, made, tasks=("toy_tiles/linear",))
    assert (badge.verdict, badge.not_verified) == ("tolerant", (CENTROID,))
    assert badge.checks[0].differs[0].startswith("cpu capability: NEON -> ")
    forge(board / "entry", "linear", flipped(2, episode=20), cpu_capability="NEON")
    with pytest.raises(ValidationFailed, match=r"more than 0\.1 point in another environment"):
        check(board, made)
    assert len(stored(board)) == 1


def test_other_weights_or_images_say_nothing_of_the_entry(
    board: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CheckpointError, match="weights_hash"):
        check(board, made, random_init=1)
    record = TargetSets.record
    other = {"fingerprint": "0" * 64}
    monkeypatch.setattr(TargetSets, "record", lambda *a: record(*a).model_copy(update=other))
    with pytest.raises(DataError, match="fingerprint"):
        check(board, made)
    assert stored(board) == []


def test_the_command_prints_stores_and_exits(board: Path, made: Path, cli: CommandLine) -> None:
    where = ("--board", board)
    verify = ("leaderboard", "verify", "entry", *WORDS, "--cache", made / "cache", *where)
    assert "give 30 or more" in cli(*verify, "--episodes", 29, code=2).err
    shown = cli(*verify, "--episodes", "all", "-t", "toy_tiles/linear")
    assert "verified 1 of 2 results (40 episodes each" in shown.out + shown.err
    assert f"not verified: {CENTROID}" in shown.err
    table = cli("leaderboard", "show", *where).out
    assert "unsigned claim" in table
    assert "verified" not in table
    forge(board / "entry", "linear", flipped(1))
    shown = cli(*verify, "--seed", 1, "--json", code=5)
    assert json.loads(shown.out)["verdict"] == "failed"
    assert "1 of" in shown.err
    assert len(stored(board)) == 2


@needs_ssh_keygen
def test_a_signed_verification_is_shown_as_verified(
    board: Path, made: Path, tmp_path: Path, cli: CommandLine
) -> None:
    key = make_key(tmp_path)
    options = ("--sign-with", key, "--board", board, "--cache", made / "cache")
    for is_trusted, shown in ((False, "unsigned claim"), (True, "verified 2 of 2 results")):
        if is_trusted:
            allow_signer(board, key)
        text = cli("leaderboard", "verify", "entry", *WORDS, *options).err
        assert f"the board shows: {shown}" in text
    assert inspect_board(board).problems == []
