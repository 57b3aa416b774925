"""`fsbench episodes export|hash`: replayable files, hashes without images, and refusals."""

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support import cli

from fsbench.core.specs import EpisodeSpec
from fsbench.data import TARGETS
from fsbench.data.episodes import EpisodeSampler

fsbench = partial(cli.call, "episodes")
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
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, task = tmp_path / "new" / "e.jsonl", f"folder:{birds}:2w3s"
    arguments = (task, "--episodes", "4", "--seed", "7")
    assert fsbench("export", *arguments, "-o", str(file)) == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["index"] for row in rows] == [0, 1, 2, 3]
    spec = EpisodeSpec(n_way=2, k_shot=3, seed=7)
    sampler = EpisodeSampler(spec, "folder-birds", dict.fromkeys(range(3), 18))
    for row in rows:
        episode = sampler.episode(row["index"])
        assert row["class_ids"] == episode.class_ids.tolist()
        for part in ("support", "query"):
            lines = zip(row["class_ids"], getattr(episode, part).tolist(), strict=True)
            assert row[part] == [[f"{NAMES[c]}/{r:02}.jpg" for r in line] for c, line in lines]
    out = capsys.readouterr()
    assert (out.out, sampler.manifest_hash(range(4)) in out.err) == ("", True)
    assert fsbench("hash", *arguments) == 0
    assert capsys.readouterr().out.strip() == sampler.manifest_hash(range(4))
    (birds / "owl" / "99.jpg").touch()
    assert fsbench("hash", *arguments) == 0
    assert capsys.readouterr().out.strip() != sampler.manifest_hash(range(4))


def test_hash_needs_official_counts_only_and_equals_that_of_the_images(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fsbench("hash", "EuroSAT:5w5s", "--episodes", "3") == 0
    counts = dict(enumerate(TARGETS.load("eurosat").FACTS.images_per_class))
    sampler = EpisodeSampler(EpisodeSpec(k_shot=5), "eurosat", counts)
    assert capsys.readouterr().out.strip() == sampler.manifest_hash(range(3))


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
    arguments: list[str], code: int, texts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fsbench(*arguments) == code
    err = capsys.readouterr().err
    assert all(text in err for text in ["fix:", *texts])


@pytest.mark.realdata
def test_real_packs_export_files_that_exist(packs: Path, tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    arguments = ["export", "eurosat:5w1s", "--data", str(packs), "--episodes", "3", "-o", str(file)]
    assert fsbench(*arguments) == 0
    for row in map(json.loads, file.read_text().splitlines()):
        assert all((packs / "eurosat" / path).is_file() for path in np.ravel(row["query"]))


def test_a_killed_export_leaves_the_old_file_and_the_next_one_clears_up(
    birds: Path, tmp_path: Path
) -> None:
    file = tmp_path / "out" / "e.jsonl"
    command = ["export", f"folder:{birds}:2w3s", "-o", str(file)]
    assert fsbench(*command, "--episodes", "2") == 0
    before = file.read_bytes()
    module = [sys.executable, "-m", "fsbench", "episodes"]
    killed = subprocess.Popen([*module, *command, "--episodes", "100000"])
    others: list[Path] = []
    for _ in range(600):
        others = [path for path in file.parent.iterdir() if path != file and path.stat().st_size]
        if others:
            break
        time.sleep(0.05)
    killed.kill()
    killed.wait(20)
    (left,) = others
    assert file.read_bytes() == before
    assert fsbench(*command, "--episodes", "4") == 0
    assert sorted(file.parent.iterdir()) == sorted([left, file]), "it may still be written"
    os.utime(left, (0, 0))
    assert fsbench(*command, "--episodes", "4") == 0
    assert list(file.parent.iterdir()) == [file]
