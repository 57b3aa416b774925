"""`fsbench power` on records whose paired spread is known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import fakes
from support.cli import call
from support.pairs import COUNT, TASK, N, ahead, write
from support.pairs import pair as known

from fsbench.api.submit import submit
from fsbench.core.statistics import Goal, standard_errors


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    return known(tmp_path)


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert call("power", *arguments, "--json") == 0
    content: dict[str, Any]
    (content,) = json.loads(capsys.readouterr().out)
    return content


def test_the_spread_of_the_records_gives_the_analytic_number(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    needed = plan(capsys, "--like", *pair, "--gap", "0.5")
    sd = 1.5 / 25 * np.sqrt(N / (N - 1))
    times = standard_errors(Goal(gap=0.005))
    first, second = needed["cells"]
    assert first["task"] == TASK
    assert first["episodes"] == N
    assert first["gap"] == pytest.approx(0.02)
    assert first["sd"] == second["sd"] == pytest.approx(sd)
    assert first["needed"] == np.ceil((times * sd / 0.005) ** 2) == 1160
    assert first["detectable"] == pytest.approx(times * sd / np.sqrt(N))
    assert first["detectable_600"] == pytest.approx(times * sd / np.sqrt(600))
    overall = needed["overall"]
    assert overall["sd"] == pytest.approx(sd / np.sqrt(2))
    assert overall["needed"] == 580
    assert overall["detectable"] == pytest.approx(times * sd / np.sqrt(2 * N))
    assert overall["gap"] == pytest.approx(0.02)


def test_the_table_keeps_its_labels_and_numbers_whole_at_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = [write(tmp_path / s, [9, 3] * 20, s, dense=[6, 8] * 20) for s in "ab"]
    for side in sides:
        write(side, [5] * N, side.name, shots=5)
    monkeypatch.setenv("COLUMNS", "80")
    assert call("power", "--like", *map(str, sides)) == 0
    lines = capsys.readouterr().out.splitlines()
    labels = [line.split()[0] for line in lines if line.startswith("folder")]
    assert labels == ["folder-blobs:5w1s", "folder-blobs:5w5s"]
    assert not any("linear@" in line or len(line) > 80 for line in lines)
    assert call("power", "--like", *map(str, sides), "--wide") == 0
    assert capsys.readouterr().out.count(" dense ") == 1


def test_dense_queries_have_a_line_of_their_own_outside_the_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = write(tmp_path / "a", [9, 3] * 20, "a", dense=[6, 8] * 20)
    b = write(tmp_path / "b", [5, 5] * 20, "b", dense=[6, 6] * 20)
    needed = plan(capsys, "--like", str(a), str(b))
    (line,) = needed["dense"]
    assert line["task"] == f"{TASK} dense"
    assert line["gap"] == pytest.approx(1 / (COUNT - 1))
    assert line["sd"] == pytest.approx(1 / (COUNT - 1) * np.sqrt(N / (N - 1)))
    assert needed["overall"]["sd"] == needed["cells"][0]["sd"]
    plain = write(tmp_path / "c", [5] * N, "c")
    assert plan(capsys, "--like", str(a), str(plain))["dense"] == []


def test_transductive_cells_never_share_a_mean_with_others(
    tmp_path: Path, pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for path, right in zip(pair, ([9] * N, [4, 5] * 20), strict=True):
        write(Path(path), right, Path(path).name, adaptation="soft_kmeans")
    capsys.readouterr()
    assert call("power", "--like", *pair, "--json") == 0
    linear, transductive = json.loads(capsys.readouterr().out)
    assert (len(linear["cells"]), len(transductive["cells"])) == (2, 1)
    assert (linear["track"][:6], transductive["track"][:12]) == ("linear", "soft_kmeans ")
    (cell,) = plan(capsys, "--like", *pair, "-t", "folder:blobs:5w1s/soft_kmeans")["cells"]
    assert cell["task"].endswith(" transductive n_query=5")


def test_alpha_and_power_count_and_t_chooses_cells(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    strict = plan(capsys, "--like", *pair, "--alpha", "0.01", "--power", "0.95")
    assert strict["cells"][0]["needed"] > 2 * 1160
    task = "folder:elsewhere/blobs:5w5s"
    (cell,) = plan(capsys, "--like", *pair, "-t", task)["cells"]
    assert cell["task"] == "folder-blobs:5w5s/linear@ibm 32px n_query=5"
    both = plan(capsys, "--like", *pair, "-t", "folder:blobs")["cells"]
    assert len(both) == 2


def test_the_table_has_a_line_a_cell_and_the_mean(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("power", "--like", *pair) == 0
    shown = capsys.readouterr()
    (line,) = (text for text in shown.out.splitlines() if text.startswith("folder-blobs:5w1s"))
    assert line.split()[2:] == ["40", "2.00", "6.08", "2.69", "0.69", "1160"]
    assert "overall, 2 tasks" in shown.out
    assert "two-sided z test" in shown.err


def test_entries_of_a_board_and_only_shared_episodes(
    tmp_path: Path, pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    board = tmp_path / "board"
    for path in pair:
        name = f"of-{Path(path).name}"
        submit(Path(path), board, fakes.DECLARATION.model_copy(update={"name": name}))
    needed = plan(capsys, "--like", "of-a", "of-b", "--board", str(board))
    assert needed["cells"][0]["needed"] == 1160
    behind = [ahead(i) - 1 for i in range(10, 60)]
    later = write(tmp_path / "c", behind, "c", first=10)
    write(later, behind[:20], "c", shots=5, first=10)
    needed = plan(capsys, "--like", str(later), "of-a", "--board", str(board))
    assert needed["overall"]["gap"] == pytest.approx(-1 / 25)
    needed = plan(capsys, "--like", "of-a", str(later), "--board", str(board))
    assert [cell["episodes"] for cell in needed["cells"]] == [N - 10, 20]
    mixed = needed["overall"]
    assert mixed["episodes"] == 20
    assert mixed["gap"] == pytest.approx(1 / 25)
    assert mixed["sd"] == pytest.approx(0, abs=1e-12)
    assert mixed["needed"] == 2


def test_what_cannot_be_paired_is_refused(
    tmp_path: Path, pair: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    late = write(tmp_path / "late", [5] * 30, "c", first=100)
    other = write(tmp_path / "other", [5] * 30, "c", shots=20)
    seeded = tmp_path / "images"
    data = fakes.dataset().model_copy(update={"fingerprint": "9" * 64})
    fakes.write(seeded, data=data)
    fakes.write_probe(tmp_path / "probe")
    several = write(write(tmp_path / "two", [5] * 30, "a"), [5] * 30, "b")
    a, board = pair[0], tmp_path / "board"
    submit(Path(a), board, fakes.DECLARATION)
    cases: list[tuple[tuple[str, ...], str]] = [
        ((a, str(late)), "0 of them shared"),
        ((a, str(other)), "share no few-shot task"),
        ((a, str(tmp_path / "probe")), "against none"),
        ((a, str(seeded)), "other settings, episodes or images"),
        ((a, str(several)), "several models: a, b"),
        ((a, "nowhere"), "--board DIR"),
        ((a, "entri", "--board", str(board)), "did you mean 'entry'"),
        ((*pair, "-t", "folder:blobs:5w20s"), "share no few-shot task"),
        ((*pair, "-t", "eurosatt"), "did you mean 'eurosat'"),
        ((*pair, "--gap", "0"), "a gap of 0 points"),
        ((*pair, "--power", "0.01"), "alpha < power"),
    ]
    for arguments, said in cases:
        assert call("power", "--like", *arguments) == 2
        shown = capfd.readouterr().err
        assert said in shown
        assert "fix:" in shown


def test_edited_results_are_no_ground_for_a_plan(
    pair: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    file = next(Path(pair[0]).rglob("entry.json"))
    file.write_text(file.read_text().replace('"mean":', '"mean":0.9,"was":', 1))
    assert call("power", "--like", *pair) == 5
    assert "fix:" in capfd.readouterr().err
