"""`fsbench episodes export|hash`: replayable files, hashes without images, and refusals."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.cli import CommandLine

from fsbench.core.specs import EpisodeSpec
from fsbench.data import TARGETS
from fsbench.data.episodes import EpisodeSampler

NAMES = ("crow", "owl", "wren")


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    """Three classes of 18 files each; export opens none of them."""
    for name in NAMES:
        (tmp_path / "birds" / name).mkdir(parents=True)
        for i in range(18):
            (tmp_path / "birds" / name / f"{i:02}.jpg").touch()
    return tmp_path / "birds"


def test_export_writes_paths_of_the_episodes_that_are_evaluated(
    birds: Path, tmp_path: Path, cli: CommandLine
) -> None:
    file = tmp_path / "new" / "e.jsonl"
    arguments = (f"folder:{birds}:2w3s", "--episodes", "4", "--seed", "7")
    shown = cli("episodes", "export", *arguments, "-o", file)
    spec = EpisodeSpec(n_way=2, k_shot=3, seed=7)
    sampler = EpisodeSampler(spec, "folder-birds", dict.fromkeys(range(3), 18))
    digest = sampler.manifest_hash(range(4))
    assert (shown.out, digest in shown.err) == ("", True)
    for index, line in enumerate(file.read_text().splitlines()):
        row, episode = json.loads(line), sampler.episode(index)
        assert (row["index"], row["class_ids"]) == (index, episode.class_ids.tolist())
        for part in ("support", "query"):
            ranks = zip(row["class_ids"], getattr(episode, part).tolist(), strict=True)
            assert row[part] == [[f"{NAMES[c]}/{r:02}.jpg" for r in line] for c, line in ranks]
    assert index == 3
    assert cli("episodes", "hash", *arguments).out.strip() == digest
    (birds / "owl" / "99.jpg").touch()
    assert cli("episodes", "hash", *arguments).out.strip() != digest


def test_hash_needs_official_counts_only_and_equals_that_of_the_images(cli: CommandLine) -> None:
    counts = dict(enumerate(TARGETS.load("eurosat").FACTS.images_per_class))
    sampler = EpisodeSampler(EpisodeSpec(k_shot=5), "eurosat", counts)
    shown = cli("episodes", "hash", "EuroSAT:5w5s", "--episodes", "3").out
    assert shown.strip() == sampler.manifest_hash(range(3))


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["hash", "eurosat"], 2, ["names 4 tasks", "eurosat:5w1s/linear@ibm"]),
        (["hash", "cdfsl:5w1s"], 2, ["names 4 tasks"]),
        (["hash", "eurosat:probe"], 2, ["runs no probe tasks"]),
        (["hash", "eurosad:5w1s"], 2, ["did you mean 'eurosat'"]),
        (["hash", "cub200:5w1s"], 3, ["CUB-200-2011 not found", "--data"]),
        (["hash", "eurosat:5w1s@startup"], 3, ["eurosat", "--data"]),
        (["export", "eurosat:5w1s", "-o", "x.jsonl"], 3, ["eurosat", "--data"]),
        (["hash", "eurosat:11w1s"], 3, ["eurosat has 10 classes", "--way"]),
        (["hash", "isic:5w400s"], 3, ["class 5", "needs 415", "--shots"]),
    ],
)
def test_refusals_name_what_is_wrong_and_the_fix(
    arguments: list[str], code: int, texts: list[str], cli: CommandLine
) -> None:
    err = cli("episodes", *arguments, code=code).err
    assert all(text in err for text in ["fix:", *texts])


@pytest.mark.realdata
def test_real_packs_export_files_that_exist(packs: Path, tmp_path: Path, cli: CommandLine) -> None:
    file = tmp_path / "e.jsonl"
    cli("episodes", "export", "eurosat:5w1s", "--data", packs, "--episodes", "3", "-o", file)
    for row in map(json.loads, file.read_text().splitlines()):
        assert all((packs / "eurosat" / path).is_file() for path in np.ravel(row["query"]))


def test_a_killed_export_leaves_the_old_file_and_the_next_one_clears_up(
    birds: Path, tmp_path: Path, cli: CommandLine
) -> None:
    file = tmp_path / "out" / "e.jsonl"
    command = ["episodes", "export", f"folder:{birds}:2w3s", "-o", str(file), "--episodes"]
    cli(*command, "2")
    before = file.read_bytes()
    killed = subprocess.Popen([sys.executable, "-m", "fsbench", *command, "100000"])
    for _ in range(600):
        others = [path for path in file.parent.iterdir() if path != file and path.stat().st_size]
        if others:
            break
        time.sleep(0.05)
    killed.kill()
    killed.wait(20)
    (left,) = others
    assert file.read_bytes() == before
    cli(*command, "4")
    assert sorted(file.parent.iterdir()) == sorted([left, file]), "it may still be written"
    os.utime(left, (0, 0))
    cli(*command, "4")
    assert list(file.parent.iterdir()) == [file]
