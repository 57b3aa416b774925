"""`fsbench demo`: every method beside its control on one board; stopped and asked for more."""

import re
from pathlib import Path

import pytest
from support.cli import CommandLine

from fsbench.api import demo
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.plan import Plan

README = Path(__file__).resolve().parents[2] / "README.md"
METHOD_RUNS = {name for name in METHODS.names() if name != "normal"}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo shrunk to rounds of two steps and one task."""
    toy = registry.BASES["toy"]
    monkeypatch.setitem(toy, "plan", Plan(rounds=2, epochs=1, epoch_images=64))  # type: ignore[arg-type]
    monkeypatch.setitem(toy, "width", 2)  # type: ignore[arg-type]
    monkeypatch.setattr(demo, "TASKS", ("toy_tiles",))
    monkeypatch.setattr(demo, "SHOTS", (1,))


@pytest.mark.usefixtures("tiny")
def test_methods_join_the_board_with_the_control_that_fits(
    tmp_path: Path, cli: CommandLine
) -> None:
    shown = cli("demo", "--threads", "1", "-o", tmp_path, "--methods", "head_reset")
    assert "run 2 of 2: toy-head_reset-s0" in shown.err
    first = {"demo-toy-normal-as-full_reset-s0", "demo-toy-head_reset-s0"}
    random = "demo-fsbench-toy_resnet-random0"
    assert all(name in shown.out for name in (*first, random))
    assert len(shown.out.splitlines() + shown.err.splitlines()) <= 40
    assert "3 backbones, one of them with random weights" in " ".join(shown.out.split())
    page = tmp_path / "site" / "index.html"
    assert f"board: {tmp_path / 'board'}; its page: {page}" in " ".join(shown.out.split())
    assert page.is_file()
    assert "next: fsbench benchmark -m" in shown.out.splitlines()[-1]
    shown = cli("demo", "--threads", "1", "-o", tmp_path, "--methods", "head_reset,welsr")
    assert "pretrain toy/head_reset" not in shown.err
    assert "pretrain toy/welsr" in shown.err
    more = {"demo-toy-normal-s0", "demo-toy-welsr-s0"}
    assert all(name in shown.out for name in (*first, *more, random))


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


def test_all_is_every_method_after_a_control_under_its_own_plan() -> None:
    pytest.importorskip("learn2learn", reason="meta-learners need it: make meta")
    runs = demo.demo_recipes(["all"])
    methods = {r.methods[0].name for r in runs.values()}
    assert methods == METHOD_RUNS | {"normal"}
    assert len(runs) == len(METHODS.names()) + 3
    assert {"toy-normal-as-anil-s0", "toy-anil-s0", "toy-maml-s0"} < runs.keys()
    assert not any("fields-" in label for label in runs)
    for at, recipe in enumerate(runs.values()):
        before = list(runs.values())[: at + 1]
        assert registry.control_recipe(recipe) in before
    assert demo.demo_recipes(["all"]) == demo.demo_recipes(METHODS.names())


def test_a_run_is_named_after_what_its_plan_has_of_its_own() -> None:
    assert list(demo.demo_recipes(demo.DEFAULT)) == ["toy-normal-s0", "toy-lw-s0"]
    stepped = registry.load_recipe("toy/swr_reanchor")
    assert demo.name_run(registry.load_recipe("toy/llf")) == "toy-llf-s0"
    assert demo.name_run(registry.load_recipe("toy/full_reset")) == "toy-full_reset-s0"
    assert demo.name_run(registry.control_recipe(stepped)) == "toy-normal-schedule=step-s0"
    assert demo.name_run(stepped.replace({"lr": 0.1})) == (
        "toy-swr_reanchor-lr=0.1-schedule=step-s0"
    )
    control = registry.control_recipe(registry.load_recipe("toy/maml"))
    assert demo.name_run(control) == "toy-normal-as-anil-s0"
    other = control.replace({"schedule": "single_cycle", "seed": 3})
    assert demo.name_run(other) == "toy-normal-as-anil-schedule=single_cycle-s3"
    far = {"width": 4, "lr": 0.7, "momentum": 0.1}
    assert demo.name_run(registry.load_recipe("toy/llf").replace(far)).startswith("toy-llf-fields-")
