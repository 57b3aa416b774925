"""The verdict on a claim from the verdicts on its figures."""

from __future__ import annotations

import pytest

from fsbench.reproductions import CLAIMS, PARTS, ClaimFigure, ClaimVerdict, judge_claim


@pytest.mark.parametrize(
    ("reproduced", "direction", "failed", "verdict"),
    [
        (3, 0, 0, "reproduced"),
        (0, 3, 0, "direction only"),
        (8, 1, 1, "direction only"),
        (8, 0, 2, "not reproduced"),
    ],
)
def test_overall(reproduced: int, direction: int, failed: int, verdict: ClaimVerdict) -> None:
    verdicts: list[ClaimVerdict] = [
        *["reproduced"] * reproduced,
        *["direction only"] * direction,
        *["not reproduced"] * failed,
    ]
    figures = [ClaimFigure(what="x", published="1", ours="2", verdict=v) for v in verdicts]
    assert judge_claim(figures) == verdict


@pytest.mark.parametrize("name", CLAIMS.names())
def test_every_claim_has_its_parts(name: str) -> None:
    claim = CLAIMS.load(name)
    assert all(hasattr(claim, part) for part in PARTS)
    assert claim.CLAIM.rule
    assert claim.CLAIM.statement
