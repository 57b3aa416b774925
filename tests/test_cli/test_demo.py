"""`fsbench demo`: runs and a random control on one board; stopped and called again."""

import re
from pathlib import Path

import pytest
from support.cli import CommandLine

from fsbench.api import demo
from fsbench.api.pretrain import name_run
from pretrain.recipes import registry
from pretrain.recipes.plan import Plan

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo shrunk to rounds of two steps and one task."""
    toy = registry.BASES["toy"]
    monkeypatch.setitem(toy, "plan", Plan(rounds=2, epochs=1, epoch_images=64))  # type: ignore[arg-type]
    monkeypatch.setitem(toy, "width", 2)  # type: ignore[arg-type]
    monkeypatch.setattr(demo, "TASKS", ("toy_tiles",))
    monkeypatch.setattr(demo, "SHOTS", (1,))


@pytest.mark.usefixtures("tiny")
def test_runs_and_a_random_control_are_ranked_and_nothing_is_done_twice(
    tmp_path: Path, cli: CommandLine
) -> None:
    shown = cli("demo", "--threads", "1", "-o", tmp_path)
    assert "run 2 of 2: toy/lw" in shown.err
    rows = ("demo-toy-normal-s0", "demo-toy-lw-s0", "demo-fsbench-toy_resnet-random0")
    assert all(name in shown.out for name in rows)
    assert len(shown.out.splitlines() + shown.err.splitlines()) <= 40
    assert "3 backbones, one of them with random weights" in " ".join(shown.out.split())
    page = tmp_path / "site" / "index.html"
    assert f"board: {tmp_path / 'board'}; its page: {page}" in " ".join(shown.out.split())
    assert page.is_file()
    assert "next: fsbench benchmark -m" in shown.out.splitlines()[-1]
    again = cli("demo", "--threads", "1", "-o", tmp_path)
    assert again.out == shown.out
    assert "toy-lw-s0 is finished already" in again.err


@pytest.mark.slow
def test_the_board_is_that_of_the_readme(tmp_path: Path, cli: CommandLine) -> None:
    """Two runs and three evaluations of the real demo; other processors give other last digits."""
    rows = re.findall(r"^\| (\d) \| (demo-\S+) \| ([\d.]+) \|", README.read_text(), re.MULTILINE)
    cli("demo", "--threads", "2", "-o", tmp_path)
    episodic, _ = cli.json("leaderboard", "show", "--board", tmp_path / "board")
    measured = [(str(e["tier"]), e["name"], 100 * e["overall"]) for e in episodic["entries"]]
    assert [(tier, name) for tier, name, _ in rows] == [(t, n) for t, n, _ in measured]
    expected = [float(overall) for *_, overall in rows]
    assert [overall for *_, overall in measured] == pytest.approx(expected, abs=0.5)


def test_a_run_is_named_after_what_its_plan_has_of_its_own() -> None:
    stepped = registry.load_recipe("toy/swr_reanchor")
    assert name_run(registry.load_recipe("toy/llf")) == "toy-llf-s0"
    assert name_run(registry.load_recipe("toy/full_reset")) == "toy-full_reset-s0"
    assert name_run(registry.control_recipe(stepped)) == "toy-normal-schedule=step-s0"
    assert name_run(stepped.replace({"lr": 0.1})) == ("toy-swr_reanchor-lr=0.1-schedule=step-s0")
    control = registry.control_recipe(registry.load_recipe("toy/maml"))
    assert name_run(control) == "toy-normal-as-anil-s0"
    other = control.replace({"schedule": "single_cycle", "seed": 3})
    assert name_run(other) == "toy-normal-as-anil-schedule=single_cycle-s3"
    far = {"width": 4, "lr": 0.7, "momentum": 0.1}
    assert name_run(registry.load_recipe("toy/llf").replace(far)).startswith("toy-llf-fields-")
