"""Rules of the claims on invented quantities: as the paper has them, then with one changed."""

from collections.abc import Mapping
from typing import Any

import pytest

from fsbench.claims import (
    CLAIMS,
    load_recorded,
    nio_gradcosine,
    reinit_table1,
    reinit_table5,
    swr_bounds,
    swr_figure1,
    swr_scenarios,
)
from fsbench.claims.engine import ClaimOutcome, Runs
from fsbench.claims.seal_ascent import PAPERS
from fsbench.claims.swr_bounds import COLOUR_PLAIN, COLOUR_SWR
from fsbench.claims.swr_decay import COLOUR, DIGITS
from fsbench.claims.swr_figure1 import CORRECTIONS, GAIN
from fsbench.claims.swr_scenarios import FULL, LIMITED, WARM
from fsbench.claims.wc_weights import ARMS, BOUND, CONTROL, PLAIN, WC

NIO = {"GC before": 0.2, "GC after": 0.4, "GN before": 1.0, "GN after": 4.0, "misfit": 0.0}
NIO |= {"smallest factor": 0.0, "of a weight": 0.01, "zero": 2, "still zero": 2}
PROBES = {
    "seal": ([80.0, 90.0, 95.0, 97.0], 0.5),
    "llf": ([70.0, 71.4, 90.0, 96.0], 1.0),
    "normal": ([60.0, 64.9, 80.0, 95.0], 2.0),
}
SWR = {"largest share": 1.0, "late growth": 0.1, "mean test": 97.0, "fit": 99.0}
SWR |= {"mean balance": 0.9, "imbalance": 0.1}
VANILLA = {"least share": 1.0, "late growth": 2.0, "mean test": 96.0, "fit": 99.0}
VANILLA |= {"mean balance": 0.8, "imbalance": 1.0}
ASCENTS = {"ratio": 150.0, "length": 9.44, "before 2": 99.0, "low 2": 20.0, "end 2": 99.0}
ASCENTS |= {"before 3": 99.0, "low 3": 20.0, "end 3": 94.0}
DECAY = {"vanilla": (1.0, 0.0), "SWR": (0.5, 90.0), "SWR + re-init": (0.95, 92.0)}
THEOREM = {"last": 90.0, "same with": [1.0] * 5, "after without": [80, 70, 50, 30, 10]}
STAGES = {"first fit": 99.0, "last fit": 99.0, "drop": 1.0}
RANKS = {"vanilla": 0, "cold": 2, "L2": 4, "L2 Init": 4, "S&P": 4, "head reset": 4, "SWR": 6}
PLAIN_WEIGHTS = {"start": [0.1] * 9, "fit": 95.0, "largest": 2.0, "peak": 2 / BOUND}
PLAIN_WEIGHTS |= {"dead": 50.0, "later": 30.0, "width": 0.2}
WC_WEIGHTS = {"start": [0.1] * 9, "fit": 95.0, "largest": 1.0, "peak": 1 / BOUND}
WC_WEIGHTS |= {"dead": 20.0, "later": 25.0, "width": 0.4}


QUANTITIES: dict[str, Mapping[Any, Mapping[str, Any]]] = {
    "nio_gradcosine": dict.fromkeys(nio_gradcosine.CLAIM.arms, NIO),
    "reinit_figure2": {},
    "reinit_table1": {
        (method, signal): {"test": accuracy, "fit": 99.0}
        for signal, row in reinit_table1.PUBLISHED.items()
        for method, (accuracy, _) in zip(reinit_table1.METHODS, row, strict=True)
    },
    "reinit_table5": {
        (column, penalty): {"test": accuracy, "fit": 99.0}
        for column, row in reinit_table5.PUBLISHED.items()
        for penalty, accuracy in zip(reinit_table5.PENALTIES, row, strict=True)
    },
    "seal_ascent": {PAPERS: ASCENTS},
    "seal_knn_depth": {
        name: {"accuracy of the probe (%)": y, "depth": d, "fit": 99.0, "low": 20.0, "chance": 10}
        for name, (y, d) in PROBES.items()
    },
    "swr_bounds": {swr_bounds.PLAIN: VANILLA, swr_bounds.SWR: SWR}
    | {COLOUR_PLAIN: VANILLA, COLOUR_SWR: SWR},
    "swr_decay": {
        (images, name): {"kept": kept, "early growth": 25.0, "best": 95.0, "final": final}
        for images in (DIGITS, COLOUR)
        for name, (kept, final) in DECAY.items()
    },
    "swr_figure1": {
        **dict.fromkeys(swr_figure1.THEOREM, THEOREM),
        GAIN: {"fit": 99.0, "best": 95.0, **{f"later {c}": [96.0] * 5 for c in CORRECTIONS}},
    },
    "swr_scenarios": {
        (scenario, name): STAGES | dict.fromkeys(("final", "later", "switch"), 80.0 + rank)
        for scenario in swr_scenarios.SCENARIOS
        for name, rank in RANKS.items()
    },
    "wc_weights": {arm: WC_WEIGHTS if arm == WC else PLAIN_WEIGHTS for arm in ARMS},
}
"""Quantities by claim and arm with which every condition just holds and every figure is right."""


def judge(
    name: str, arm: Any = None, changes: Mapping[str, Any] | None = None, colour_images: int = 1
) -> ClaimOutcome:
    """Return the verdicts of a claim on the quantities, with two seeds.

    changes: quantities of one arm; a tuple has one value per seed.
    """
    runs: Any = {a: [dict(q), dict(q)] for a, q in QUANTITIES.get(name, {}).items()}
    for quantity, value in (changes or {}).items():
        values = value if isinstance(value, tuple) else (value, value)
        for run, changed in zip(runs[arm], values, strict=True):
            assert quantity in run
            run[quantity] = changed
    return CLAIMS.load(name).judge(Runs(runs), colour_images)


def list_verdicts(outcome: ClaimOutcome) -> dict[str, Any]:
    """Return "statement: what" -> the verdict on a figure, or whether a condition holds."""
    verdicts: dict[str, Any] = {}
    for statement in outcome.statements:
        verdicts |= {f"{statement.name}: {c.what}": c.holds for c in statement.conditions}
        verdicts |= {f"{statement.name}: {f.what}": f.verdict for f in statement.figures}
    return verdicts


@pytest.mark.parametrize("name", CLAIMS.names())
def test_quantities_as_published_are_reproduced_under_the_recorded_bounds(name: str) -> None:
    ours, recorded = judge(name), load_recorded(name)
    assert recorded is not None
    if name in QUANTITIES:
        assert set(list_verdicts(ours).values()) == {True, "reproduced"}
    for mine, theirs in zip(ours.statements, recorded.statements, strict=True):
        figures = [{(f.what, f.published) for f in part.figures} for part in (mine, theirs)]
        bounds = [{(c.what, c.required) for c in part.conditions} for part in (mine, theirs)]
        assert (figures[0], bounds[0]) == (figures[1], bounds[1])


@pytest.mark.parametrize(
    "name", ["swr_bounds", "swr_decay", "swr_figure1", "swr_scenarios", "wc_weights"]
)
def test_without_colour_images_their_statements_are_not_testable(name: str) -> None:
    statements = CLAIMS.load(name).card.statements
    for outcome in judge(name, colour_images=0).statements:
        is_shown = [c.holds for c in outcome.conditions] == [False] and not outcome.figures
        assert is_shown == statements[outcome.name].colour


DIRECTION, NOT = "direction only", "not reproduced"
REANCHORED = "SWR + re-init"
BN, RAISED = ("with BN", "gc"), ("with BN", "gc_gn_sqrt")
PROBE = "accuracy of the probe (%)"
LEAD = "block 2: seal -"
COMPARABLE = {f"comparable to {other}": NOT for other in ("L2 Init", "L2", "S&P", "head reset")}
FALL_AND_RETURN = ("3: accuracy after", "3: accuracy at its end")
CHANGES: dict[str, list[tuple[Any, dict[str, Any], dict[str, Any]]]] = {
    "nio_gradcosine": [
        (BN, {"GC after": 0.1}, {"with BN: GC": NOT}),
        (BN, {"GC after": (0.5, 0.1)}, {"with BN: GC": DIRECTION}),
        (BN, {"GC after": (0.35, 0.45)}, {}),
        (BN, {"GC before": 0.995, "GC after": 0.999}, {"with BN: initial GC": False}),
        (BN, {"GN after": (4.0, 6.0)}, {}),
        (BN, {"GN after": (4.0, 6.1)}, {"with BN: GN after": NOT}),
        (BN, {"misfit": (1e-3, 0.0)}, {"one factor a tensor": NOT}),
        (BN, {"still zero": (1, 2)}, {"one factor a tensor": NOT}),
        (BN, {"of a weight": (0.009, 1.0)}, {"one factor a tensor": NOT}),
        (BN, {"smallest factor": (-0.1, 0.0)}, {"one factor a tensor": NOT}),
        (RAISED, {"GC after": 0.1}, {}),
        (RAISED, {"GN after": (0.5, 4.0)}, {"with BN: GN": DIRECTION, "its cap 5": DIRECTION}),
        (RAISED, {"GN after": (4.0, 5.9)}, {}),
        (RAISED, {"GN after": 9.1}, {"its cap 5": NOT}),
        (RAISED, {"GN before": 5.5, "GN after": 5.0},
         {"with BN: initial GN": False, "with BN: GN": NOT}),
        (RAISED, {"GN before": (6.0, 3.9), "GN after": 5.0}, {"with BN: GN": DIRECTION}),
    ],
    "reinit_table1": [
        (("LW", 1.0), {"test": 66.0}, {}),
        (("LW", 1.0), {"test": (60.0, 72.3)}, {}),
        (("WELS", 2.0), {"test": (97.5, 98.5)}, {"signal 2: WELS": DIRECTION}),
        (("LW", 1.0), {"test": 60.0}, {"signal 1: LW": DIRECTION}),
        (("LW", 1.0), {"test": 50.0}, {"signal 1: LW": NOT}),
        (("BL", 1.0), {"test": 70.0}, {"signal 1: BL": NOT}),
        (("BL", 2.0), {"fit": (98.9, 99.0)}, {"training accuracy of BL": False}),
        (("BL", 2.0), {"fit": (98.9, 99.1)}, {}),
        (("LW", 2.0), {"fit": 50.0}, {}),
    ],
    "reinit_table5": [
        (("Baseline", 0.0), {"test": (0.205, 0.225)}, {}),
        (("Baseline", 0.0), {"test": (0.21, 0.23)}, {"L2 0: Baseline": NOT}),
        (("Baseline", 0.005), {"test": (0.40, 0.42)}, {"L2 0.005: Baseline": DIRECTION}),
        (("LW", 0.01), {"test": (0.70, 0.72)}, {"L2 0.01: LW": DIRECTION}),
        (("LW", 0.01), {"test": (0.40, 0.42)}, {"L2 0.01: LW": NOT}),
        (("LW", 0.01), {"test": (0.45, 0.65)}, {"L2 0.01: LW": NOT}),
        (("Baseline", 0.0), {"fit": 98.9}, {"training accuracy without penalty": False}),
        (("Baseline", 0.01), {"fit": 50.0}, {}),
    ],
    "seal_ascent": [
        (PAPERS, {"low 3": (5.0, 35.0)}, {}),
        (PAPERS, {"low 3": 49.0, "end 3": 75.0}, dict.fromkeys(FALL_AND_RETURN, DIRECTION)),
        (PAPERS, {"low 3": 50.0, "end 3": 60.0}, dict.fromkeys(FALL_AND_RETURN, NOT)),
        (PAPERS, {"low 3": 99.0, "end 3": 99.0}, dict.fromkeys(FALL_AND_RETURN, NOT)),
        (PAPERS, {"before 2": (97.9, 100.0)}, {"before an ascent": False}),
        (PAPERS, {"ratio": 149.0}, {"descent / ascent": False}),
        (PAPERS, {"length": 9.0}, {"S times the sum": False}),
    ],
    "seal_knn_depth": [
        ("seal", {PROBE: [80.0, 71.4 + 18.5, 95.0, 97.0]},
         {f"{LEAD} llf": DIRECTION, f"{LEAD} normal": DIRECTION}),
        ("seal", {PROBE: [80.0, 71.4, 95.0, 97.0]},
         {f"{LEAD} llf": NOT, f"{LEAD} normal": DIRECTION}),
        ("seal", {PROBE: [65.0, 90.0, 95.0, 97.0]}, {"block 1: accuracy": NOT}),
        ("seal", {PROBE: ([69.0, 90.0, 95.0, 97.0], [81.0, 90.0, 95.0, 97.0])},
         {"block 1: accuracy": DIRECTION}),
        ("seal", {PROBE: [80.0, 90.0, 79.0, 97.0]}, {"block 3: accuracy": NOT}),
        ("seal", {"depth": 3.0}, {"prediction depth": NOT}),
        ("seal", {"depth": (0.1, 1.5)}, {"prediction depth": DIRECTION}),
        ("llf", {"depth": 3.0}, {"prediction depth": NOT}),
        ("seal", {"low": (30.0, 20.0)}, {"after SEAL's ascents": False}),
        ("llf", {"low": 30.0}, {}),
        ("llf", {"fit": (98.9, 99.0)}, {"at the end, all methods": False}),
        ("normal", {PROBE: [60.0, 87.5, 80.0, 95.0]},
         {"block 2: accuracy of normal": False, f"{LEAD} normal": DIRECTION}),
    ],
    "swr_bounds": [
        (swr_bounds.SWR, {"largest share": (1.0, 1.01)}, {"under the bound of Theorem 2": NOT}),
        (swr_bounds.PLAIN, {"late growth": -0.1}, {"bound: vanilla": NOT, "vanilla - SWR": NOT}),
        (swr_bounds.SWR, {"late growth": (2.5, 0.1)}, {"half: vanilla - SWR": DIRECTION}),
        (swr_bounds.PLAIN, {"least share": (1.0, 0.99)}, {"largest norm of vanilla": False}),
        (swr_bounds.SWR, {"mean test": (96.5, 98.0)}, {"labels: test accuracy, SWR": DIRECTION}),
        (COLOUR_SWR, {"mean test": 95.9}, {"colour images: test accuracy, SWR": NOT}),
        (swr_bounds.PLAIN, {"fit": 98.9}, {"labels: training accuracy of vanilla": False}),
        (COLOUR_PLAIN, {"fit": 98.9},
         {"colour images: training": False, "balancedness: training accuracy of vanilla": False}),
        (COLOUR_SWR, {"fit": 94.0}, {}),
        (COLOUR_SWR, {"fit": (93.9, 94.0)}, {"difference in training accuracy": False}),
        (COLOUR_SWR, {"mean balance": 0.7, "imbalance": 1.1},
         {"balancedness: SWR - vanilla": NOT, "Definition 2": NOT}),
    ],
    "swr_decay": [
        ((DIGITS, "vanilla"), {"kept": 0.94}, {"vanilla: growth of the norm kept": DIRECTION}),
        ((DIGITS, "vanilla"), {"kept": 0.5}, {"vanilla: growth of the norm kept": NOT}),
        ((DIGITS, "SWR"), {"kept": 0.51}, {"SWR: growth of the norm kept": DIRECTION}),
        ((DIGITS, "SWR"), {"kept": 1.1}, {"SWR: growth of the norm kept": NOT}),
        ((DIGITS, REANCHORED), {"kept": 0.81}, {"re-init: growth of the norm kept": DIRECTION}),
        ((DIGITS, "vanilla"), {"early growth": 24.0}, {"vanilla: growth until": False}),
        ((DIGITS, "SWR"), {"early growth": 5.0}, {}),
        ((DIGITS, "SWR"), {"early growth": 4.9}, {"norms: SWR: growth until": False}),
        ((COLOUR, "SWR"), {"early growth": 4.9}, {"accuracy: SWR: growth until": False}),
        ((COLOUR, "SWR"), {"best": (95.1, 95.0)}, {"best test accuracy of SWR": False}),
        ((COLOUR, REANCHORED), {"final": 90.0}, {"test accuracy: SWR + re-init - SWR": NOT}),
        ((DIGITS, REANCHORED), {"final": 90.0}, {}),
    ],
    "swr_figure1": [
        ("mlp", {"same with": ([1.0] * 5, [1.0, 0.999, 1.0, 1.0, 1.0])}, {"predictions kept": NOT}),
        ("mlp", {"after without": [80, 70, 72, 30, 10]}, {"mlp, without": DIRECTION}),
        ("mlp", {"after without": ([80, 70, 71, 30, 10], [80, 70, 73, 30, 10])},
         {"mlp, without": DIRECTION}),
        ("mlp", {"after without": ([80, 70, 69, 30, 10], [80, 70, 75, 30, 10])}, {}),
        ("mlp", {"after without": [90] * 5}, {"mlp, without": NOT}),
        ("mlp", {"last": (89.9, 90.0)}, {"mlp: test accuracy before": False}),
        (GAIN, {"later with": ([96.0] * 5, [96.0, 96.0, 96.0, 96.0, 95.2])},
         {"with correction: gain": DIRECTION}),
        (GAIN, {"later with": [96.0, 96.0, 94.5, 96.0, 96.0]}, {"with correction: gain": NOT}),
        (GAIN, {"fit": 98.9}, {"training accuracy before scaling": False}),
        (GAIN, {"best": 95.1}, {"best test accuracy before scaling": False}),
    ],
    "swr_scenarios": [
        ((WARM, "SWR"), {"final": 83.6}, {}),
        ((WARM, "SWR"), {"final": 83.4}, COMPARABLE),
        ((WARM, "SWR"), {"final": (79.0, 89.0)}, {"SWR above vanilla": DIRECTION}),
        ((WARM, "cold"), {"final": (79.0, 81.0)},
         {"gap that a warm start": False, "cold above vanilla": NOT}),
        ((WARM, "vanilla"), {"first fit": 98.9, "last fit": 50.0}, {"end of the first": False}),
        ((FULL, "vanilla"), {"last fit": 98.9, "first fit": 50.0}, {"end of the last": False}),
        ((FULL, "S&P"), {"drop": (-1.0, 3.0), "later": 80.0},
         {"drop: S&P above 0": DIRECTION, "later: S&P above vanilla": NOT}),
        ((LIMITED, "vanilla"), {"last fit": 98.9}, {"limited: training accuracy": False}),
        ((LIMITED, "L2"), {"switch": 86.0, "later": 84.6},
         {"switch: SWR above L2": NOT, "later: S&P comparable to L2": NOT}),
    ],
    "wc_weights": [
        (PLAIN, {"peak": (0.8, 1.3)}, {}),
        (PLAIN, {"peak": (0.8, 1.1)}, {f"in units of the bound {BOUND:.3f}": False}),
        (WC, {"largest": 2.5}, {"largest |w| of all epochs": NOT}),
        (WC, {"largest": (2.5, 1.0)}, {"largest |w| of all epochs": DIRECTION}),
        (WC, {"peak": (1.0, 0.5)}, {"with: largest |w|": NOT}),
        (WC, {"start": [0.1] * 8 + [0.1001]}, {"epoch 0": NOT}),
        (WC, {"fit": 89.9},
         {f"{part}: difference in training accuracy": False for part in ("spread", "zeros")}),
        (PLAIN, {"fit": 94.9},
         {f"{part}: training accuracy without": False for part in ("spread", "zeros")}),
        (PLAIN, {"dead": 4.9}, {"dead weights without": False, "dead weights, |w|": NOT}),
        (WC, {"dead": (60.0, 19.0)},
         {"dead weights, |w|": DIRECTION, "difference in dead": DIRECTION}),
        (WC, {"later": 0.0}, {"difference in dead weights": NOT}),
        (WC, {"width": 0.1}, {"16th and the 84th percentile": NOT}),
        (CONTROL, {"width": 9.0, "dead": 0.0, "largest": 0.0}, {}),
    ],
}  # fmt: skip
"""Arm, changed quantities, and the conditions and figures that this changes, by claim: a part of
each one's text that no other changed one has."""


@pytest.mark.parametrize(
    ("name", "arm", "changes", "expected"),
    [(name, *change) for name, changes in CHANGES.items() for change in changes],
)
def test_a_change_moves_these_verdicts_alone(
    name: str, arm: Any, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    before, after = list_verdicts(judge(name)), list_verdicts(judge(name, arm, changes))
    moved = {what: after[what] for what in after if after[what] != before[what]}
    for part, verdict in expected.items():
        [what] = [what for what in moved if part in what]
        assert moved.pop(what) == verdict
    assert not moved


@pytest.mark.parametrize(
    ("name", "arm", "changes", "text"),
    [
        ("seal_ascent", PAPERS, {"end 3": (90.0, 98.0)}, "94.0 ± 4.0 %"),
        ("seal_knn_depth", "seal", {"depth": (0.1, 0.5)}, "seal 0.30 ± 0.20"),
        ("swr_decay", (DIGITS, "SWR"), {"kept": (0.1, 0.5)}, "0.30 ± 0.20"),
        ("swr_figure1", GAIN, {"later with": ([96.0] * 5, [97.0] * 5)}, "+1.50 ± 0.50"),
    ],
)
def test_figures_show_the_error_of_the_mean(
    name: str, arm: Any, changes: dict[str, Any], text: str
) -> None:
    """Half the difference of two seeds; the deviation is larger by sqrt(2)."""
    figures = [f.ours for s in judge(name, arm, changes).statements for f in s.figures]
    assert sum(text in ours for ours in figures) == 1
