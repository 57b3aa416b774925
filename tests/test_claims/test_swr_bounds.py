"""Boundedness and balancedness: what is measured, and the verdicts in both directions."""

import pytest
from support.claims import NOT_FOUND, judge_planted, list_verdicts

from fsbench.claims import _training, swr_bounds
from fsbench.claims.engine import ClaimJob
from fsbench.claims.swr_bounds import CLAIM, COLOUR_PLAIN, COLOUR_SWR, DIGITS, PLAIN, SWR


def test_norms_and_ratios_by_hand() -> None:
    measured = swr_bounds.compare_norms([[3, 4, 5], [3, 8, 5]], [1, 1, 1], 1.0)
    assert measured["norm"] == pytest.approx([50**0.5, 98**0.5])
    assert measured["imbalance"] == pytest.approx((4 / 3 + 5 / 8 + 0) / 3 / 2)
    grown = swr_bounds.compare_norms([[4, 3], [4, 3], [8, 6], [8, 6], [12, 9]], [1, 1], 1.0)
    assert grown["late growth"] == pytest.approx(15 - 10)


def test_the_bound_by_hand() -> None:
    """Adam at 1e-3 moves 4 elements by at most 2 * 3.1623e-3 a step; over lam = 1e-2."""
    measured = swr_bounds.compare_norms([[3, 1], [3, 2], [3, 1.5]], [4, 1], 1e-2)
    assert measured["least share"] == pytest.approx(3 / (3 + 2 * 0.31622776601))
    assert measured["largest share"] == pytest.approx(2 / (1 + 0.31622776601))


def plant(
    swr: dict[str, float], vanilla: dict[str, float]
) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Two seeds with the same quantities on both sources."""
    return {
        arm: [{"fit": 100.0, **quantities}] * 2
        for arm, quantities in (
            (SWR, swr),
            (PLAIN, vanilla),
            (COLOUR_SWR, swr),
            (COLOUR_PLAIN, vanilla),
        )
    }


GOOD = {"largest share": 0.9, "least share": 0.5, "late growth": 0.1, "mean test": 97.0}
GOOD |= {"mean balance": 0.9, "imbalance": 0.1}
BAD = {"largest share": 3.0, "least share": 1.1, "late growth": 2.0, "mean test": 96.0}
BAD |= {"mean balance": 0.8, "imbalance": 1.0}


def test_swr_as_in_the_paper_is_reproduced() -> None:
    outcomes = judge_planted(CLAIM, plant(GOOD, BAD))
    assert [outcome.verdict for outcome in outcomes.values()] == ["reproduced"] * 3
    assert outcomes["bound"].figures[0].ours == "0.90 of it"


def test_the_opposite_is_not_reproduced() -> None:
    outcomes = judge_planted(CLAIM, plant(BAD, GOOD | {"late growth": -0.1}))
    figures = [figure for outcome in outcomes.values() for figure in outcome.figures]
    assert set(list_verdicts(figures)) == {"not reproduced"}


@pytest.mark.parametrize(
    ("swr", "vanilla", "holds"),
    [(99.0, 100.0, [True, True]), (60.0, 100.0, [True, False]), (98.0, 98.0, [False, True])],
)
def test_balancedness_needs_two_networks_that_learn_equally(
    swr: float, vanilla: float, holds: list[bool]
) -> None:
    outcomes = judge_planted(CLAIM, plant(GOOD | {"fit": swr}, BAD | {"fit": vanilla}))
    assert [c.holds for c in outcomes["balancedness"].conditions] == [True, *holds]
    assert outcomes["accuracy"].conditions[0].holds == holds[0]


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (0.99, False)])
def test_every_layer_must_exceed_the_bound_without_swr(share: float, holds: bool) -> None:
    outcomes = judge_planted(CLAIM, plant(GOOD, BAD | {"least share": share}))
    assert outcomes["bound"].conditions[0].holds == holds


def test_without_colour_images_balancedness_is_not_testable() -> None:
    runs = {arm: results for arm, results in plant(GOOD, BAD).items() if arm[0] == DIGITS}
    outcomes = judge_planted(CLAIM, runs, NOT_FOUND)
    assert {name: outcome.verdict for name, outcome in outcomes.items()} == {
        "bound": "reproduced",
        "accuracy": "reproduced",
        "balancedness": "not testable here",
    }


def test_a_tiny_run_measures_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(swr_bounds.EPOCHS, DIGITS, 2)
    monkeypatch.setitem(swr_bounds.LAMS, DIGITS, 1.0)
    monkeypatch.setattr(_training, "BATCH", 256)
    run = swr_bounds.measure(ClaimJob(SWR, 0))
    assert len(run["norm"]) == len(run["balancedness"]) == 3
    assert len(run["test accuracy (%)"]) == 2
    assert run["norm"][2] == pytest.approx(run["norm"][0], rel=1e-5)
    assert all(0.5 < value < 1 for value in run["balancedness"])
    assert run["balancedness"][0] != run["balancedness"][2]
    assert run["fit"] > 5
