"""`fsbench compare` on records whose paired outcomes are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from support import fakes
from support.cli import CommandLine
from support.pairs import TASK, N, ahead, write
from support.pairs import pair as known

from fsbench.api.compare import Gap, compare, format_p
from fsbench.api.submit import submit
from fsbench.core.statistics import DETECTABLE

SD = 1.5 / 25 * np.sqrt(N / (N - 1))
"""Standard deviation of the gaps of the known pair on one task."""
HALF = 1.96 * SD / np.sqrt(N)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    return known(tmp_path)


def compared(cli: CommandLine, *arguments: object) -> list[dict[str, Any]]:
    comparisons: list[dict[str, Any]] = cli.json("compare", *arguments)
    return sorted(comparisons, key=lambda comparison: len(comparison["track"]))


def exact_p() -> float:
    """Two-sided, for 20 gaps of 2 and 20 of -1 under random signs: all sums by convolution."""
    odds = np.ones(1)
    for step in [2] * 20 + [1] * 20:
        odds = np.convolve(odds, [0.5, *[0] * (2 * step - 1), 0.5])
    sums = np.arange(odds.size) - 60
    return float(2 * odds[sums >= 20].sum())


def test_a_known_gap_in_numbers_and_in_words(pair: tuple[str, str], cli: CommandLine) -> None:
    (comparison,) = compared(cli, *pair)
    first, second = comparison["tasks"]
    assert (first["task"], first["n"], first["unit"]) == (TASK, N, "episodes")
    ends = [0.02, 0.02 - HALF, 0.02 + HALF]
    assert [first[k] for k in ("gap", "low", "high")] == pytest.approx(ends)
    assert first["a"] - first["b"] == pytest.approx(0.02)
    assert first["d"] == pytest.approx(0.02 / SD)
    assert first["p"] == pytest.approx(exact_p(), abs=4 * np.sqrt(exact_p() / 9999))
    assert first["needed"] == np.ceil((DETECTABLE * SD / 0.02) ** 2) == 73
    assert first["p_holm"] == pytest.approx(2 * min(first["p"], second["p"]))
    assert first["better"] is None
    assert first["sentence"] == f"not distinguishable at {N} episodes; about 73 would be needed"
    overall = comparison["overall"]
    assert overall["p"] < 0.01
    assert overall["p_holm"] is None
    assert overall["d"] == pytest.approx(0.02 / SD * np.sqrt(2))
    assert overall["high"] - overall["low"] == pytest.approx(2 * HALF / np.sqrt(2))
    assert overall["sentence"] == "A is better by 2.00 points (95 % 0.67 to 3.33)"
    assert comparison["track"] == "linear n_query=5 ibm 32px"


def test_a_task_is_decided_after_holm_over_its_neighbours(tmp_path: Path, cli: CommandLine) -> None:
    """One task at p about 0.03 is told apart alone, and is not as one of three."""
    right = [5 + (2 if i % 2 or i == 0 else -1) for i in range(N)]
    for shots in (1, 5, 20):
        write(tmp_path / "a", right, "a", shots)
        write(tmp_path / "b", [5] * N, "b", shots)
    sides = [tmp_path / name for name in "ab"]
    (three,), (one,) = compared(cli, *sides), compared(cli, *sides, "-t", "folder:blobs:5w1s")
    assert 0.02 < one["tasks"][0]["p"] == one["tasks"][0]["p_holm"] < 0.05
    assert one["tasks"][0]["better"] == "A"
    assert three["tasks"][0]["p"] == one["tasks"][0]["p"]
    assert [task["better"] for task in three["tasks"]] == [None] * 3
    assert three["overall"]["better"] == "A"


def test_sides_mirror_and_a_command_twice_says_the_same(
    pair: tuple[str, str], cli: CommandLine
) -> None:
    (one,), (again,), (other,) = (compared(cli, *sides) for sides in (pair, pair, reversed(pair)))
    assert one == again
    lines, mirrored = ([*x["tasks"], x["overall"]] for x in (one, other))
    assert [line["p"] for line in mirrored] == [line["p"] for line in lines]
    assert other["overall"]["gap"] == pytest.approx(-one["overall"]["gap"])
    assert other["overall"]["sentence"] == "B is better by 2.00 points (95 % 0.67 to 3.33)"


def test_probes_pair_by_image_and_are_compared_apart(tmp_path: Path, cli: CommandLine) -> None:
    """The better probe is right wherever the other is; the few-shot outcomes are equal."""
    for name, accuracy in (("a", 0.9), ("b", 0.3)):
        fakes.write_probe(tmp_path / name, accuracy)
        write(tmp_path / name, [5, 9] * 20, "a")
    few_shot, by_image = sorted(
        compared(cli, tmp_path / "a", tmp_path / "b"), key=lambda x: x["overall"]["unit"]
    )
    (probe,) = by_image["tasks"]
    best = [fakes.probe_records(accuracy).best[1] for accuracy in (0.9, 0.3)]
    assert not (best[1] & ~best[0]).any()
    assert (probe["unit"], probe["n"]) == ("images", 37)
    gap = int((best[0] & ~best[1]).sum()) / 37
    assert probe["gap"] == by_image["overall"]["gap"] == pytest.approx(gap)
    assert probe["p"] == 0.0002  # 2 ** (1 - alone), below what the resamples can say
    for line in (*few_shot["tasks"], few_shot["overall"]):
        assert (line["gap"], line["p"], line["d"], line["better"]) == (0.0, 1.0, None, None)
        assert line["sentence"] == f"not distinguishable at {N} episodes"


def test_tracks_are_never_averaged_and_t_chooses(
    tmp_path: Path, pair: tuple[str, str], cli: CommandLine
) -> None:
    for path, right in zip(pair, ([9] * N, [4, 5] * 20), strict=True):
        write(Path(path), right, Path(path).name, adaptation="soft_kmeans")
    inductive, transductive = compared(cli, *pair)
    assert inductive["overall"]["gap"] == pytest.approx(0.02)
    assert transductive["track"] == "soft_kmeans n_query=5 ibm 32px transductive"
    assert len(transductive["tasks"]) == 1
    (chosen,) = compared(cli, *pair, "-t", "folder:elsewhere/blobs:5w5s")
    assert [task["task"] for task in chosen["tasks"]] == [TASK.replace("5w1s", "5w5s")]


def test_the_table_and_the_sentence(pair: tuple[str, str], cli: CommandLine) -> None:
    shown = cli("compare", *pair)
    line = next(text for text in shown.out.splitlines() if text.startswith("folder-blobs:5w1s"))
    assert line.split()[2:9] == ["40", "45.40", "43.40", "2.00", "0.12", "to", "3.88"]
    assert "\nA is better by 2.00 points (95 % 0.67 to 3.33).\n" in shown.out
    assert "cover the sampling of episodes only, not pretraining seeds" in shown.out
    assert shown.out.index("A is better") < shown.out.index("p Holm"), "the finding comes first"
    assert "sign-flip" in shown.err


def test_entries_of_a_board_and_only_shared_episodes(
    tmp_path: Path, pair: tuple[str, str], cli: CommandLine
) -> None:
    board = tmp_path / "board"
    for path in pair:
        submit(path, board, fakes.DECLARATION, name=f"of-{Path(path).name}")
    (comparison,) = compared(cli, "of-a", "of-b", "--board", board)
    assert comparison["self_reported"] == ["A", "B"]
    assert comparison["overall"]["gap"] == pytest.approx(0.02)
    shown = cli("compare", pair[0], "of-b", "--board", board)
    assert f"A: {pair[0]}, B: of-bˢ, " in shown.out, "a folder of one's own is no entry"
    assert "only the submitter vouches" in shown.out + shown.err
    later = write(tmp_path / "c", [7] * N, "c", first=30)
    (comparison,) = compared(cli, later, "of-a", "--board", board)
    behind = np.mean([7 - ahead(i) for i in range(30, 40)]) / 25
    assert [task["n"] for task in comparison["tasks"]] == [10]
    assert comparison["tasks"][0]["gap"] == pytest.approx(behind)


def test_nothing_in_common_is_refused(
    tmp_path: Path, pair: tuple[str, str], cli: CommandLine
) -> None:
    late = write(tmp_path / "late", [5] * 30, "c", first=100)
    other = write(tmp_path / "other", [5] * 30, "c", shots=20)
    fakes.write_probe(tmp_path / "probe")
    copy = fakes.dataset().model_copy(update={"fingerprint": "9" * 64})
    fakes.write(tmp_path / "images", data=copy)
    several = write(write(tmp_path / "two", [5] * 30, "a"), [5] * 30, "b")
    cases: list[tuple[tuple[object, ...], str]] = [
        ((pair[0], late), "0 of them shared"),
        ((pair[0], other), "share no task"),
        ((pair[0], tmp_path / "probe"), "against folder-blobs:probe"),
        ((*pair, "-t", "folder:blobs:probe"), "episodes and images: none against none"),
        ((*pair, "-t", "eurosatt"), "did you mean 'eurosat'"),
        ((pair[0], tmp_path / "images"), "share no task with equal settings"),
        ((pair[0], several), "several models: a, b"),
    ]
    for arguments, text in cases:
        shown = cli("compare", *arguments, code=2).err
        assert text in shown
        assert "fix:" in shown


def test_numbers_as_people_say_them() -> None:
    texts = {0.0312: "0.031", 1.0: "1.000", 0.001: "0.001", 0.000999: "< .001", 0.0: "< .001"}
    assert {p: format_p(p) for p in texts} == texts


@pytest.mark.parametrize("n", [2, 5, 29, 30])
def test_below_thirty_pairs_the_interval_is_students(n: int, tmp_path: Path) -> None:
    right = np.arange(n) % 5 + 10
    a = write(tmp_path / "a", list(right + 1 + np.arange(n) % 2), name="a")
    b = write(tmp_path / "b", list(right), name="b")
    (comparison,) = compare(a, b)
    gaps = (1 + np.arange(n) % 2) / 25
    quantile = scipy.stats.t.ppf(0.975, n - 1) if n < 30 else 1.96
    half = quantile * gaps.std(ddof=1) / np.sqrt(n)
    for line in comparison.gaps():
        assert (line.low, line.high) == pytest.approx((line.gap - half, line.gap + half))


def test_a_frame_holds_numbers_and_a_tiny_gap_of_rounding_needs_no_pairs(
    pair: tuple[str, str], tmp_path: Path
) -> None:
    """Sums of floats differ by 1e-17: so many pairs that no integer of a frame holds them."""
    comparisons = compare(*pair)
    frame, lines = comparisons.to_frame(), comparisons[0].gaps()
    assert [*frame] == ["track", *Gap.model_fields, "sentence"]
    numbers = Gap.model_fields.keys() - {"task", "unit", "better"}
    types = dict.fromkeys(numbers, "float64") | {"n": "Int64", "needed": "Int64"}
    assert {n: str(frame[n].dtype) for n in numbers} == types
    assert frame["p_holm"].isna().tolist() == [line.p_holm is None for line in lines]
    assert frame["low"].tolist() == [line.low for line in lines]
    a = write(tmp_path / "tiny-a", [1, 7, 12, 3, 5, 5], name="a")
    b = write(tmp_path / "tiny-b", [7, 1, 3, 12, 6, 4], name="b")
    assert compare(a, b).to_frame()["needed"].isna().all()
