"""`fsbench reproduce`: lists, runs and keeps claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsbench.cli.main import run


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["reproduce", *arguments])
    return int(ended.value.code or 0)


def test_alone_it_lists_the_claims(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--json") == 0
    names = [row["claim"] for row in json.loads(capsys.readouterr().out)]
    assert {"reinit_table3", "reinit_figure2"} <= set(names)


def test_a_claim_shows_figures_rule_and_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("reinit_table3", "-o", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "scnn: LW > BL" in shown
    assert "verdict: direction only" in shown
    stored = json.loads((tmp_path / "reinit_table3.json").read_text(encoding="utf8"))
    assert stored["verdict"] == "direction only"
    assert len(stored["figures"]) == 25


@pytest.mark.parametrize("words", [("reinit_table33",), ("reinit_table3", "--all")])
def test_what_makes_no_sense_is_a_usage_error(words: tuple[str, ...]) -> None:
    assert call(*words) == 2
