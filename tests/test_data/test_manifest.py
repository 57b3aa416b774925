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
from support.protocols import target

from fsbench.core.specs import EpisodeSpec
from fsbench.data import TARGETS
from fsbench.data.episodes import Episode, EpisodeSampler, write_episodes

fsbench = partial(cli.call, "episodes")


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    """Three classes of 18 files each; export opens none of them."""
    for name in ("crow", "owl", "wren"):
        (tmp_path / "birds" / name).mkdir(parents=True)
        for i in range(18):
            (tmp_path / "birds" / name / f"{i:02}.jpg").touch()
    return tmp_path / "birds"


def test_export_writes_paths_of_the_episodes_that_are_evaluated(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "e.jsonl"
    task = f"folder:{birds}:2w3s"
    assert fsbench("export", task, "--episodes", "4", "--seed", "7", "-o", str(file)) == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["index"] for row in rows] == [0, 1, 2, 3]
    spec = EpisodeSpec(n_way=2, k_shot=3, seed=7)
    sampler = EpisodeSampler(spec, "folder-birds", dict.fromkeys(range(3), 18))
    for row in rows:
        episode = sampler.episode(row["index"])
        assert row["class_ids"] == episode.class_ids.tolist()
        names = [("crow", "owl", "wren")[c] for c in row["class_ids"]]
        for part in ("support", "query"):
            ranks = getattr(episode, part).tolist()
            assert row[part] == [
                [f"{n}/{r:02}.jpg" for r in line] for n, line in zip(names, ranks, strict=True)
            ]
    assert (birds / rows[0]["support"][0][0]).is_file()
    out = capsys.readouterr()
    assert out.out == ""
    assert sampler.manifest_hash(range(4)) in out.err


def test_hash_needs_official_counts_only_and_equals_that_of_the_images(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fsbench("hash", "EuroSAT:5w5s", "--episodes", "3") == 0
    counts = dict(enumerate(TARGETS.load("eurosat").FACTS.images_per_class))
    sampler = EpisodeSampler(EpisodeSpec(k_shot=5), "eurosat", counts)
    assert capsys.readouterr().out.strip() == sampler.manifest_hash(range(3))


def test_hash_of_a_folder_counts_its_images(
    birds: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = f"folder:{birds}:2w3s"
    assert fsbench("hash", task, "--episodes", "2") == 0
    before = capsys.readouterr().out
    (birds / "owl" / "99.jpg").touch()
    assert fsbench("hash", task, "--episodes", "2") == 0
    assert capsys.readouterr().out != before


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["hash", "eurosat"], 2, ["names 4 tasks", "eurosat:5w1s/linear@ibm"]),
        (["hash", "cdfsl:5w1s"], 2, ["names 4 tasks"]),
        (["hash", "eurosat:probe"], 2, ["runs no probe tasks"]),
        (["hash", "eurosad:5w1s"], 2, ["did you mean 'eurosat'"]),
        (["hash", "eurosat:5w1s@startup"], 3, ["eurosat", "--data"]),
        (["export", "eurosat:5w1s", "-o", "x.jsonl"], 3, ["eurosat", "--data"]),
        (["hash", "eurosat:11w1s"], 3, ["eurosat has 10 classes", "--way"]),
        (
            ["hash", "isic:5w400s"],
            3,
            ["class 5", "needs 415", "--shots"],
        ),
    ],
)
def test_refusals_name_what_is_wrong_and_the_fix(
    arguments: list[str], code: int, texts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fsbench(*arguments) == code
    err = capsys.readouterr().err
    assert all(text in err for text in ["fix:", *texts])


def test_a_killed_export_leaves_the_old_file_and_no_half_of_a_new_one(tmp_path: Path) -> None:
    dataset = target()
    sampler = EpisodeSampler(EpisodeSpec(), dataset.name, dataset.class_counts)
    file = tmp_path / "e.jsonl"
    write_episodes(file, sampler, dataset, 2)
    before = file.read_bytes()

    class Broken(EpisodeSampler):
        def episode(self, i: int) -> Episode:
            if i == 3:
                raise KeyboardInterrupt
            return super().episode(i)

    broken = Broken(EpisodeSpec(), dataset.name, dataset.class_counts)
    with pytest.raises(KeyboardInterrupt):
        write_episodes(file, broken, dataset, 5)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["e.jsonl"]


@pytest.mark.realdata
def test_real_packs_export_files_that_exist(packs: Path, tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    arguments = ["export", "eurosat:5w1s", "--data", str(packs), "--episodes", "3", "-o", str(file)]
    assert fsbench(*arguments) == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    (folder,) = {p.parent for p in packs.glob("eurosat/2750")} or {packs / "eurosat"}
    for row in rows:
        assert all((folder / path).is_file() for path in np.ravel(row["query"]))


def test_an_export_deletes_what_one_that_was_killed_a_day_ago_left(
    birds: Path, tmp_path: Path
) -> None:
    file = tmp_path / "out" / "e.jsonl"
    task = f"folder:{birds}:2w3s"
    command = ["export", task, "-o", str(file)]
    module = [sys.executable, "-m", "fsbench", "episodes"]
    killed = subprocess.Popen([*module, *command, "--episodes", "100000"])
    for _ in range(600):
        if file.parent.is_dir() and any(p.stat().st_size for p in file.parent.iterdir()):
            break
        time.sleep(0.05)
    killed.kill()
    killed.wait(20)
    (left,) = file.parent.iterdir()
    assert fsbench(*command, "--episodes", "4") == 0
    assert sorted(file.parent.iterdir()) == sorted([left, file]), "it may still be written"
    os.utime(left, (0, 0))
    assert fsbench(*command, "--episodes", "4") == 0
    assert list(file.parent.iterdir()) == [file]
