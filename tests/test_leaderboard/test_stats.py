"""`fsbench leaderboard stats` from submitted results to a table and to JSON."""

from pathlib import Path
from xml.etree import ElementTree

from support.cli import CommandLine
from support.fakes import add_entry, write


def test_everything_that_the_board_allows(tmp_path: Path, cli: CommandLine) -> None:
    """Three entries far apart over two columns, and one that lacks a column.

    Their critical difference is 2.343 sqrt(3 4 / 12) by Demsar.
    """
    board, figures = tmp_path / "board", tmp_path / "figures"
    for name, accuracy in {"best": 0.9, "middle": 0.6, "last": 0.3, "half": 0.6}.items():
        add_entry(board, name, accuracy, shots=(1,) if name == "half" else (1, 5))
    intervals = cli.json("leaderboard", "stats", "--board", board)
    fields = ("name", "tier", "low", "rank", "high")
    assert [tuple(map(e.get, fields)) for e in intervals["linear n_query=5 ibm 32px"]] == [
        ("best", 1, 1, 1, 1),
        ("middle", 2, 2, 2, 2),
        ("last", 3, 3, 3, 3),
    ]
    shown = cli("leaderboard", "stats", "--board", board, "--figures", figures)
    (line,) = (text for text in shown.out.splitlines() if "middle" in text and "to" in text)
    assert line.split()[:2] == ["middle", "2"]
    assert line.split()[3:] == ["2", "2", "to", "2"]
    assert "One pretraining seed per row" in shown.err
    assert "wrote" in shown.err
    (path,) = figures.iterdir()
    assert path.name == "linear-n_query-5-ibm-32px-ranks.svg"
    texts = {(text or "").strip() for text in ElementTree.parse(path).getroot().itertext()}
    assert {"best", "middle", "last", "1.00", "2.00", "3.00"} <= texts
    assert "critical difference 2.34" in texts
    assert "half" not in texts


def test_stability_compares_heads_and_shots(tmp_path: Path, cli: CommandLine) -> None:
    """One leads by 1 and 20 shots and over all of them, .6 to .57, and five by 5 shots."""
    board, figures = tmp_path / "board", tmp_path / "figures"
    for name, accuracies in {"one": (0.9, 0.3, 0.6), "five": (0.3, 0.9, 0.5)}.items():
        for shots, accuracy in zip((1, 5), accuracies, strict=False):
            write(tmp_path / f"results-{name}", accuracy, shots=shots, name=name)
        add_entry(board, name, accuracies[-1], shots=(20,))
    words = ("leaderboard", "stats", "--stability", "--board", board)
    stability = cli.json(*words)
    rows = [(r["name"], r["first"], r["alone"], r["choices"]) for r in stability["rows"]]
    assert rows == [("one", 3, 3, 4), ("five", 1, 1, 4)]
    assert [c["part"] for c in stability["choices"]] == ["all columns", "5w1s", "5w5s", "5w20s"]
    shown = cli(*words, "--figures", figures)
    [line] = (text for text in shown.out.splitlines() if text.startswith("5w5s"))
    assert line.split() == ["5w5s", "five*", "1", "of", "2", "-", "-", "-", "-"]
    assert "Kendall's tau-b" in shown.err
    [path] = figures.iterdir()
    assert path.name == "linear-n_query-5-ibm-32px-stability.svg"


def test_a_board_of_one_entry_and_none(tmp_path: Path, cli: CommandLine) -> None:
    board, figures = tmp_path / "board", tmp_path / "figures"
    add_entry(board)
    assert [*cli.json("leaderboard", "stats", "--board", board).values()] == [[]]
    shown = cli("leaderboard", "stats", "--board", board, "--figures", figures)
    assert not figures.exists()
    assert "Not computed: it takes two ranked entries" in shown.err
    shown = cli("leaderboard", "stats", "--stability", "--board", board, "--figures", figures)
    assert not figures.exists()
    assert "Not computed: it takes a table of two ranked entries" in shown.err
    cli("leaderboard", "stats", "--board", tmp_path / "nowhere", code=2)
