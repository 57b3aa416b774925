"""`fsbench budget` from outside: a row a method, exact steps, going on after a kill, refusals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.pretrain import Killed, source
from support.tables import printed

from fsbench.api.budget import BudgetRun, accuracies_by_steps, budget_panel, format_accuracies
from fsbench.cli.main import run
from fsbench.core import progress
from pretrain.training.loop import train_recipe

SMALL = ["width=2", "input_size=8", "batch_size=8", "plan.epochs=2", "plan.epoch_images=null"]
SETS = [part for text in SMALL for part in ("--set", text)]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FSBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("fsbench.api.budget.load_source", lambda *args: source())


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        run(["budget", *arguments])
    return int(exit_.value.code or 0)


def a_run(method: str, steps: int, seed: int, accuracy: float) -> BudgetRun:
    return BudgetRun(
        method=method,
        steps=steps,
        seed=seed,
        accuracy=accuracy,
        total_steps=2 * steps,
        flops=1,
        folder="",
    )


def test_figures_by_hand() -> None:
    runs = [
        a_run("normal", 8, 0, 0.4), a_run("normal", 8, 1, 0.6), a_run("lw", 8, 0, 0.7),
        a_run("lw", 8, 1, 0.7), a_run("normal", 16, 0, 0.5), a_run("normal", 16, 1, 0.5),
    ]  # fmt: skip
    assert accuracies_by_steps(runs) == {
        "normal": {8: [0.4, 0.6], 16: [0.5, 0.5]},
        "lw": {8: [0.7, 0.7]},
    }
    assert format_accuracies([0.4, 0.6]) == "50.0 ± 14.1"
    assert format_accuracies([0.4]) == "40.0"
    plain, lw = budget_panel(runs, "t").curves
    assert (plain.label, plain.x) == ("normal", (8, 16))
    assert plain.y == pytest.approx((50, 50))
    assert (lw.label, lw.y) == ("lw", (70,))


def test_methods_get_equal_steps_and_one_row_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["toy/welsr", *SETS, "--method", "lw", "--steps", "9,4", "-o", str(tmp_path / "out")]
    assert command(*call) == 0
    out = capsys.readouterr().out
    rows = json.loads((tmp_path / "out" / "budget.json").read_text())
    assert [(r["method"], r["steps"]) for r in rows] == [
        ("normal", 4), ("lw", 4), ("normal", 9), ("lw", 9),
    ]  # fmt: skip
    assert [r["total_steps"] for r in rows] == [8, 8, 18, 18]
    for row in rows:
        record = json.loads((Path(row["folder"]) / "run.json").read_text())
        assert record["source_accuracy"] == row["accuracy"]
        assert [r["steps"] for r in record["rounds"]] == [row["steps"]] * 2
        assert f"{100 * row['accuracy']:.1f}" in out
    assert (tmp_path / "out" / "budget.png").is_file()
    assert printed(lambda: command(*call), capsys)[80].startswith("validation accuracy (%)")
    assert command(*call, "--json") == 0
    assert json.loads(capsys.readouterr().out) == rows


def test_a_killed_sweep_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["toy/welsr", *SETS, "--steps", "4", "--seeds", "2", "-o", str(tmp_path)]
    trained: list[str] = []

    def until(n: int) -> Callable[..., Path]:
        def train(recipe: Any, *args: Any, **more: Any) -> Path:
            if len(trained) == n:
                raise Killed
            trained.append(recipe.label)
            return train_recipe(recipe, *args, **more)

        return train

    monkeypatch.setattr("fsbench.api.budget.train_recipe", until(3))
    with pytest.raises(Killed):
        run(["budget", *call])
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/run.json")}
    assert len(times) == 3
    monkeypatch.setattr("fsbench.api.budget.train_recipe", train_recipe)
    assert command(*call) == 0
    assert len(list(tmp_path.glob("*/run.json"))) == 4
    assert times == {path: path.stat().st_mtime_ns for path in times}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--steps", "four"], "--steps 'four' is no whole number"),
        (["--steps", "0"], "no steps per round"),
        (["--steps", "1"], "plan.round_steps=1 is fewer than a round has epochs"),
        (["--steps", "4", "--method", "nope"], "nope"),
        (["--steps", "4", "--method", "swr_reanchor"], "would never re-anchor"),
    ],
)
def test_refusals_name_what_was_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert command("toy/welsr", *SETS, *arguments, "-o", str(tmp_path / "out")) == 2
    assert text in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*/run.json"))


def test_a_long_sweep_wants_to_be_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["toy/welsr", *SETS, "--steps", "4", "-o", str(tmp_path / "out")]
    monkeypatch.setattr(progress, "HOUR", 0.0)
    assert command(*call) == 2
    assert "2 runs of toy/welsr" in capsys.readouterr().err
    assert command(*call, "--yes") == 0
    assert command(*call) == 0, "nothing is left to do"
