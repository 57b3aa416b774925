"""Folders of one's own: too few images, other numbers of queries, and two folders of one name."""

from pathlib import Path

from support.cli import CommandLine
from support.images import draw_images
from support.reading import read

NET = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")


def images(folder: Path, counts: dict[str, int], side: int = 16) -> Path:
    names = (f"{name}/{n:02}.png" for name, count in counts.items() for n in range(count))
    return draw_images(folder, *names, side=side)


def test_too_few_images_name_the_largest_number_of_queries_that_fits(
    tmp_path: Path, cli: CommandLine
) -> None:
    task = f"folder:{images(tmp_path / 'own', {'Forest': 12, 'River': 20})}"
    words = ("episodic", *NET, "--way", "2", "--limit", "3", "-o", tmp_path / "r", "-t", task)
    text = cli(*words, "--shots", "5", code=3).err
    assert "12 images in class 'Forest'; 5-shot with 15 queries needs 20" in text
    assert "fix: use --n-query 7 or fewer" in text
    results = cli.json(*words, "--shots", "1,5", "--n-query", "7")
    assert [result["spec"]["episode"]["n_query"] for result in results] == [7, 7]
    cli(*words, "--shots", "1", "--n-query", "3")
    shown = cli("show", tmp_path / "r").out
    assert "n_query=7" in shown
    assert "n_query=3" in shown


def test_two_folders_of_one_name_have_results_of_their_own(
    tmp_path: Path, cli: CommandLine
) -> None:
    counts = {"a": 16, "b": 17}
    folders = [images(tmp_path / place / "birds", counts, 16 + n) for n, place in enumerate("xy")]
    tasks = ",".join(f"folder:{folder}:2w1s" for folder in folders)
    arguments = [word for task in tasks.split(",") for word in ("-t", task)]
    results = cli.json("episodic", *NET, "--limit", "3", "-o", tmp_path / "r", *arguments)
    names = {result["dataset"]["name"] for result in results}
    assert len(names) == len({result["dataset"]["fingerprint"] for result in results}) == 2
    assert {name.partition("+")[0] for name in names} == {"folder-birds"}
    assert len({result["manifest_hash"] for result in results}) == 1
    assert {result.dataset.name for result in read(tmp_path / "r")} == names
