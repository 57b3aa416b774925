"""`fsbench claims`: lists, runs and keeps claims."""

import json
from functools import partial
from pathlib import Path

import pytest
from support import cli

call = partial(cli.call, "claims")


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
    (statement,) = stored["statements"]
    assert statement["verdict"] == "direction only"
    assert len(statement["figures"]) == 25
    assert stored["provenance"]["command"] == "fsbench claims reinit_table3"
    assert "views" not in stored


def test_the_condition_comes_before_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("reinit_table3") == 0
    shown = capsys.readouterr().out
    places = [shown.index(text) for text in ("pairs per network", "scnn: LW > BL", "verdict: ")]
    assert places == sorted(places)
    assert "reason: 23 of 25 figures reproduced; not reproduced: vgg16: LW > FC" in shown


def test_all_prints_condition_verdict_and_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fsbench.claims import CLAIMS

    monkeypatch.setattr(CLAIMS, "names", lambda: ("reinit_figure2", "reinit_table3"))
    assert call("--all") == 0
    rows = [
        line for line in capsys.readouterr().out.splitlines() if line.lstrip().startswith("reinit")
    ]
    assert [row.split()[0] for row in rows] == ["reinit_figure2", "reinit_table3"]
    assert "holds: rows of Table 2 72" in rows[0]
    assert "2 of 2 figures reproduced" in rows[0]
    assert "direction only" in rows[1]


@pytest.mark.parametrize(
    "words", [("reinit_table33",), ("reinit_table3", "--all"), ("--full",), ("--all", "--full")]
)
def test_what_makes_no_sense_is_a_usage_error(words: tuple[str, ...]) -> None:
    assert call(*words) == 2
