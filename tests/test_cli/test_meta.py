"""Meta-learners through the command line: trained, evaluated, and refused without learn2learn."""

import json
import sys
from pathlib import Path

import pytest
from support.cli import CommandLine

SMALL = ("width=2", "plan.epoch_images=100", "plan.epochs=1", "validate_every=1")


def sets(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--set", text)]


def test_a_meta_learner_is_pretrained_and_evaluated_on_the_same_episodes_as_all(
    tmp_path: Path, cli: CommandLine
) -> None:
    pytest.importorskip("learn2learn", reason="meta-learners need it: make meta")
    small = sets(*SMALL, "maml.val_episodes=2")
    shown = cli("pretrain", "toy/maml", *small, "-o", tmp_path, "--threads", "1")
    folder = tmp_path / "toy-maml-s0"
    accuracy = json.loads((folder / "run.json").read_text())["episodic_accuracy"]
    assert "5-way 5-shot accuracy %" in shown.out
    assert f"{100 * accuracy:.2f}" in shown.out
    assert "val accuracy" not in shown.out
    assert f"episodic accuracy {accuracy:.1%}" in shown.err
    task = ["-t", "toy", "--shots", "1", "--episodes", "4", "--input-size", "native"]
    table = cli("benchmark", "-m", f"run:{folder}", *task, "-o", tmp_path / "results").out
    assert "5w1s" in table
    assert "source" not in table.lower()


@pytest.mark.parametrize("name", ["maml", "protonet"])
def test_without_learn2learn_the_command_says_how_to_install_it(
    name: str, tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "learn2learn", None)
    runs = tmp_path / "runs"
    text = cli("pretrain", f"toy/{name}", *sets("width=2"), "-o", runs, code=2).err
    text = " ".join(text.split())
    assert "needs the package learn2learn" in text
    assert "make meta" in text
    assert "--no-build-isolation --no-deps" in text
    assert not runs.exists()
