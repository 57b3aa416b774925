"""`fsbench claims`: lists, runs and keeps claims."""

import json
from pathlib import Path

import pytest
from support.cli import CommandLine


def test_alone_it_lists_the_claims(cli: CommandLine) -> None:
    """Whose fault a miss is, stands beside every verdict that is not `reproduced`."""
    rows = cli.json("claims")
    assert {"reinit_table3", "reinit_figure2"} <= {row["claim"] for row in rows}
    for row in rows:
        is_missed = bool(set(row["verdict"].split("; full: ")) - {"reproduced"})
        assert bool(row["fault of a miss"]) == is_missed
    [fault] = [row["fault of a miss"] for row in rows if row["claim"] == "reinit_table3"]
    assert fault == "contradicts the paper: in its own Table 2, LW does not beat FC on vgg16"


def test_a_claim_shows_figures_rule_and_verdict(tmp_path: Path, cli: CommandLine) -> None:
    shown = cli("claims", "reinit_table3", "-o", tmp_path).out
    parts = (
        "pairs per network",
        "scnn: LW > BL",
        "verdict: direction only",
        "fault of a miss: contra",
    )
    positions = [shown.index(text) for text in parts]
    assert positions == sorted(positions), "the condition comes before the figures"
    assert "reason: 23 of 25 figures reproduced; not reproduced: vgg16: LW > FC" in shown
    stored = json.loads((tmp_path / "reinit_table3.json").read_text(encoding="utf8"))
    (statement,) = stored["statements"]
    assert statement["verdict"] == "direction only"
    assert len(statement["figures"]) == 25
    assert stored["provenance"]["command"] == "fsbench claims reinit_table3"
    assert "views" not in stored


def test_all_prints_condition_verdict_and_reason(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    from fsbench.claims import CLAIMS

    monkeypatch.setattr(CLAIMS, "names", lambda: ("reinit_figure2", "reinit_table3"))
    lines = map(str.lstrip, cli("claims", "all").out.splitlines())
    rows = [line for line in lines if line.startswith("reinit")]
    assert [row.split()[0] for row in rows] == ["reinit_figure2", "reinit_table3"]
    assert "holds: rows of Table 2 72" in rows[0]
    assert "2 of 2 figures reproduced" in rows[0]
    assert "direction only" in rows[1]
