"""Tables of the command line at four widths: whole numbers, a stated order, golden files."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from rich.cells import cell_len
from support import fakes, methods, pairs
from support.cli import CommandLine, call

from fsbench.api.compare import compare
from fsbench.api.leaderboard import leaderboard
from fsbench.api.listing import LISTINGS
from fsbench.api.submit import submit
from fsbench.cli.console import show_tables
from fsbench.core.tables import TextTable, fit_table, wrap
from fsbench.results.table import build_tables
from fsbench.results.verification import read_loaded
from leaderboard.methods import read_method_boards
from leaderboard.render.methods import make_tables

ROOT = Path(__file__).resolve().parents[2]
PILOT = ROOT / "leaderboard" / "studies" / "pilot" / "entries"
GOLDEN = ROOT / "tests" / "golden" / "tables"
RUNS = (("normal", 0, 0.5), ("normal", 1, 0.52), ("llf", 0, 0.6), ("llf", 1, 0.62), ("swr", 0, 0.5))
WIDTHS = (80, 100, 120, 200)


def numbers(text: str) -> Counter[str]:
    """Return every number of a text and how often it occurs."""
    return Counter(re.findall(r"\d+(?:[.,]\d+)*", text))


def printed(
    show: Callable[[], object], capture: pytest.CaptureFixture[str]
) -> dict[int | None, str]:
    """Return what is printed at each width, and None in a pipe; lines fit, numbers are whole."""
    shown: dict[int | None, str] = {}
    capture.readouterr()
    for width in (None, *WIDTHS):
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("COLUMNS", raising=False)
            if width is not None:
                patch.setenv("COLUMNS", str(width))
            show()
        text = shown[width] = capture.readouterr().out
        assert width is None or max(map(cell_len, text.splitlines())) <= width
        assert not numbers(text) - numbers(shown[None]), "a broken number reads as another one"
        assert "…" not in text
    return shown


def make_results(folder: Path) -> list[TextTable]:
    """Two models, one of them with dense rows, and a probe."""
    pairs.write(folder, [9, 11] * 20, "a", dense=[14, 16] * 20)
    pairs.write(folder, [15, 12] * 20, "a", shots=5)
    pairs.write(folder, [8, 10] * 20, "pilot-normal-schedule=single_cycle-s1")
    fakes.write_probe(folder)
    loaded = list(read_loaded(folder))
    return build_tables([one.result for one in loaded], [one.model for one in loaded])


def make_comparison(folder: Path) -> list[TextTable]:
    sides = {"a": ([9, 11], [14, 16], [15, 12]), "b": ([8, 11], [13, 17], [16, 11])}
    for name, (one_shot, dense, five_shots) in sides.items():
        pairs.write(folder / name, one_shot * 20, name, dense=dense * 20)
        pairs.write(folder / name, five_shots * 20, name, shots=5)
    return compare("a", "b").tables()


def make_board(folder: Path) -> Path:
    """Two recipes of two seeds, one of one, on two data sets at two shots."""
    other = {"images_hash": "f" * 64, "fingerprint": "e" * 64}
    sets = fakes.dataset(), fakes.dataset("folder-rings").model_copy(update=other)
    for (method, seed, accuracy), data, shots in product(RUNS, sets, (1, 5)):
        recipe, facts = f"toy-{method}-schedule=single_cycle", methods.facts(method, seed)
        result = {"name": f"{recipe}-s{seed}", "shots": shots, "data": data, "backbone": facts}
        fakes.write(folder / recipe, accuracy + shots / 50, **result)
    for method in dict.fromkeys(method for method, *_ in RUNS):
        recipe = f"toy-{method}-schedule=single_cycle"
        submit(folder / recipe, folder / "board", fakes.DECLARATION, name=recipe)
    return folder / "board"


TABLES: dict[str, Callable[[Path], list[TextTable]]] = {
    "results": make_results,
    "compare": make_comparison,
    "board": lambda folder: leaderboard(make_board(folder)).tables(seeds=True),
    "methods": lambda folder: [
        table for board in read_method_boards(make_board(folder)) for table in make_tables(board)
    ],
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_at_four_widths(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    """Refresh on purpose: REFRESH=1 pytest tests/test_cli/test_tables.py"""
    monkeypatch.chdir(tmp_path)
    tables = TABLES[name](tmp_path)
    shown = printed(lambda: show_tables(tables), cli.capture)
    text = "".join(f"== {width} columns\n{shown[width]}" for width in WIDTHS)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("REFRESH"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf8")
    assert text == file.read_text(encoding="utf8")


@pytest.mark.parametrize("what", [name for name in LISTINGS if name != "models"] + [""])
def test_listings_at_four_widths(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [what, "toy/"] if what == "recipes" else [what] * bool(what)
    assert printed(lambda: call("ls", *words), capsys)


@pytest.mark.parametrize("words", ["ls methods", "ls datasets", "ls heads", "data ls"])
def test_a_listing_takes_a_line_an_item(
    words: str, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = cli.json(*words.split())
    monkeypatch.setenv("COLUMNS", "100")
    shown = cli(*words.split()).out
    body = [line for line in shown.partition("─\n")[2].splitlines() if line]
    assert len(body) == len(items)
    assert max(map(len, body)) <= 100
    names = [next(iter(item.values())) for item in items]
    assert all(line.startswith(name) for line, name in zip(body, names, strict=True))


def test_published_numbers_are_wide_and_each_note_is_printed_once(cli: CommandLine) -> None:
    shown = cli("leaderboard", "show", "--board", PILOT, "--wide")
    assert shown.out.count("\npublished\n") == 1, "once, whatever the number of tracks"
    notes = shown.err.splitlines()
    assert len(notes) == len(set(notes))


def test_parts_are_left_out_in_the_stated_order() -> None:
    table = TextTable(
        "t",
        ("task", "a", "b", "in-domain", "flags"),
        (("x", "57.75 ± 0.88", "1.00 ± 0.10", "20.00", "short"), ("x dense", "1", "2", "3", "-")),
        optional=("dense", "in-domain", "flags"),
    )
    fits = [fit_table(table, width)[1] for width in range(80, 1, -1)]
    order = ["dense", "in-domain", "flags", "b"]
    assert all(omitted == order[: len(omitted)] for omitted in fits)
    assert {len(omitted) for omitted in fits} == {0, 1, 2, 3, 4}
    assert fit_table(table, None) == (table, [])


@pytest.mark.parametrize("width", range(3, 30))
def test_wrapped_text_breaks_no_number(width: int) -> None:
    text = "lam=0.0005, pilot-s10 at -0.25 (600 of 1,140) abcdefghijklmnopqrstuvwxyz12"
    lines = wrap(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    if width > 5:
        assert all(len(line) <= width for line in lines)
        whole = re.findall(r"\d+(?:[.,]\d+)*", text)
        assert [n for line in lines for n in re.findall(r"\d+(?:[.,]\d+)*", line)] == whole


def test_columns_wide_and_format_choose_what_is_printed(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = ("leaderboard", "show", "--board", make_board(tmp_path))
    monkeypatch.setenv("COLUMNS", "50")
    shown = cli(*board).err
    assert "left out at 50 columns: source, " in shown
    assert all(option in shown for option in ("--columns", "--wide", "--format"))
    wide = cli(*board, "--wide").out
    assert "folder-rings:5w5s" in wide
    assert "◦ toy-swr-" in wide, "a row of one seed is hollow in every table"
    assert "ranked entries of several seeds share tier 1" in " ".join(wide.split())
    chosen = cli(*board, "--columns", "folder-rings:5w5s n_query=5,source").out
    (head, *_) = (line for line in chosen.splitlines() if line.startswith("tier"))
    assert head.split()[:2] == ["tier", "entry"]
    assert ("source" in head, "overall" in head) == (True, False)
    assert "column 'nonsense'" in cli(*board, "--columns", "nonsense", code=2).err
    results = tmp_path / "toy-swr-schedule=single_cycle"
    for form, sign in (("csv", "task,"), ("md", "| task |")):
        assert sign in cli("show", results, "--format", form).out


def test_quiet_prints_the_table_alone_and_every_command_says_that_it_starts(
    tmp_path: Path, cli: CommandLine
) -> None:
    fakes.write(tmp_path)
    shown = cli("show", tmp_path, "-q")
    assert shown.err == ""
    assert "folder-blobs" in shown.out
    assert cli("show", tmp_path).err.startswith("fsbench show: starting\n")


def test_the_first_line_comes_before_torch_is_imported() -> None:
    arguments = [sys.executable, "-X", "importtime", "-m", "fsbench", "ls", "heads"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
    lines = run.stderr.splitlines()
    started = lines.index("fsbench ls: starting")
    imported = [i for i, line in enumerate(lines) if re.search(r"\| +(torch|scipy)$", line)]
    assert all(i > started for i in imported)


def test_models_of_timm_are_searched(cli: CommandLine) -> None:
    (row,) = cli.json("ls", "models", "resnet10t")
    assert row == {"model": "timm/resnet10t", "weights": ["c3_in1k"]}
    assert row in cli.json("ls", "models", "timm/RESNET10")
