"""What commands refuse: before any work, with the exit code and the way out."""

import shlex
from pathlib import Path

import pytest
import torch
from support.cases import read_cases
from support.cli import CommandLine

REFUSED = read_cases("refusals")
NETS = {"NET": "-m fsbench/toy_resnet --random-init 0"}
NETS["SMALL"] = f"{NETS['NET']} --input-size 16"
NETS["WITH"] = "-m timm/resnet18 -t eurosat:5w1s -m"
WRITERS = {"episodic", "probe", "analyze", "demo", "pretrain", "claims"}


@pytest.mark.parametrize(
    ("code", "command", "texts"),
    [(code, command, texts) for code in REFUSED for command, *texts in REFUSED[code]],
)
def test_a_refusal_comes_before_any_work_with_the_way_out(
    code: int,
    command: str,
    texts: list[str],
    tmp_path: Path,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({}, "a.pth")
    words = [part for word in shlex.split(command) for part in NETS.get(word, word).split()]
    shown = cli(*words, *(["-o", "results"] if words[0] in WRITERS else []), code=code).err
    assert all(text in " ".join(shown.split()) for text in ["fix:", *texts])
    assert not (tmp_path / "results").exists()
