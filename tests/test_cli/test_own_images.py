"""Folders of one's own: too few images, other numbers of queries, and two folders of one name."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support.cli import call
from support.reading import read

from fsbench.core.errors import DataError
from fsbench.core.specs import EpisodeSpec
from fsbench.data.episodes import EpisodeSampler


def images(folder: Path, counts: dict[str, int], shade: int = 0) -> Path:
    for i, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True)
        for n in range(count):
            pixels = Image.new("RGB", (16, 16), (100 * i + shade, 10 * n, 0))
            pixels.save(folder / name / f"{n:02}.png")
    return folder


def evaluate(
    capsys: pytest.CaptureFixture[str], output: Path, *arguments: str
) -> tuple[int, list[dict[str, Any]], str]:
    common = ["episodic", "-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32"]
    code = call(*common, "--way", "2", "--limit", "3", "-o", str(output), "--json", *arguments)
    shown = capsys.readouterr()
    return code, json.loads(shown.out) if code == 0 else [], shown.err


def test_too_few_images_name_the_largest_number_of_queries_that_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = f"folder:{images(tmp_path / 'own', {'Forest': 12, 'River': 20})}"
    code, _, text = evaluate(capsys, tmp_path / "r", "-t", task, "--shots", "5")
    assert code == 3
    assert "12 images in class 'Forest'; 5-shot with 15 queries needs 20" in text
    assert "fix: use --n-query 7 or fewer" in text
    code, _, text = evaluate(capsys, tmp_path / "r", "-t", task)
    assert "12 images in class 'Forest'; 50-shot with 15 queries needs 65" in text
    assert "fix: use --shots 1,5 --n-query 7 or fewer" in text
    fixed = ("-t", task, "--shots", "1,5", "--n-query", "7")
    code, results, text = evaluate(capsys, tmp_path / "r", *fixed)
    assert code == 0, text
    assert [result["spec"]["episode"]["n_query"] for result in results] == [7, 7]
    evaluate(capsys, tmp_path / "r", "-t", task, "--shots", "1", "--n-query", "3")
    call("show", str(tmp_path / "r"))
    shown = capsys.readouterr().out
    assert "n_query=7" in shown
    assert "n_query=3" in shown


@pytest.mark.parametrize(
    ("shots", "queries", "count", "fix"),
    [
        (5, 15, 19, "use --n-query 14 or fewer"),
        (50, 15, 50, "use --shots 1,5,20"),
        (50, 15, 6, "use --shots 1,5 --n-query 1 or fewer"),
        (1, 15, 1, "add images to the class, or leave it out"),
    ],
)
def test_what_is_proposed_fits(shots: int, queries: int, count: int, fix: str) -> None:
    spec = EpisodeSpec(k_shot=shots, n_query=queries, n_way=2)
    with pytest.raises(DataError) as error:
        EpisodeSampler(spec, "x", {0: count, 1: 100})
    assert error.value.fix == fix
    words = fix.split()
    k = max(map(int, words[2].split(","))) if "--shots" in words else shots
    n = int(words[words.index("--n-query") + 1]) if "--n-query" in words else queries
    if words[0] == "use":
        changed = spec.model_copy(update={"k_shot": k, "n_query": n})
        EpisodeSampler(changed, "x", {0: count, 1: 100}).episode(0)


def test_two_folders_of_one_name_have_results_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"a": 16, "b": 17}
    folders = [images(tmp_path / place / "birds", counts, 50 * n) for n, place in enumerate("xy")]
    tasks = ",".join(f"folder:{folder}:2w1s" for folder in folders)
    arguments = [word for task in tasks.split(",") for word in ("-t", task)]
    common = ["episodic", "-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32"]
    code = call(*common, "--limit", "3", "-o", str(tmp_path / "r"), "--json", *arguments)
    shown = capsys.readouterr()
    assert not code, shown.err
    results = json.loads(shown.out)
    names = {result["dataset"]["name"] for result in results}
    assert len(names) == len({result["dataset"]["fingerprint"] for result in results}) == 2
    assert {name.partition("+")[0] for name in names} == {"folder-birds"}
    assert len({result["manifest_hash"] for result in results}) == 1
    assert {result.dataset.name for result in read(tmp_path / "r")} == names
