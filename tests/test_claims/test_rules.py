"""Rules of the claims on invented quantities: as the paper has them, then with one changed."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from support.claims import FOUND, NOT_FOUND

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
from fsbench.claims.engine import ClaimCondition, Runs
from fsbench.claims.swr_bounds import COLOUR_PLAIN, COLOUR_SWR
from fsbench.claims.swr_figure1 import CORRECTIONS, GAIN
from fsbench.claims.swr_scenarios import FULL, LIMITED, WARM
from fsbench.claims.wc_weights import ARMS, BOUND, END, PHASES, PLAIN, START, WC

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
DECAY = {"vanilla": (1.0, 0.0), "SWR": (0.5, 90.0), "SWR + re-init": (0.95, 92.0)}
THEOREM = {"last": 90.0, "same with": [1.0] * 5, "after without": [80, 70, 50, 30, 10]}
STAGES = {"first fit": 99.0, "last fit": 99.0, "drop": 1.0}
RANKS = {"vanilla": 0, "cold": 2, "L2": 4, "L2 Init": 4, "S&P": 4, "head reset": 4, "SWR": 6}
PLAIN_WEIGHTS = {"start": [0.1] * 9, "fit": 95.0, "largest": 2.0, "peak": 2 / BOUND}
PLAIN_WEIGHTS |= {"dead": 50.0, "later": 30.0, "width": 0.2}
WC_WEIGHTS = {"start": [0.1] * 9, "fit": 95.0, "largest": 1.0, "peak": 1 / BOUND}
WC_WEIGHTS |= {"dead": 20.0, "later": 25.0, "width": 0.4}


def trace(low: float, after: float = 99.0, first: float = 99.0) -> list[float]:
    """Return accuracies of three generations of 16 epochs; low, after: of the third."""
    second = [50.0, 50, 50, 20] + [99.0] * 12
    return [first] * 16 + second + [50.0, 50, 50, low] + [after] * 12


QUANTITIES: dict[str, Mapping[Any, Mapping[str, Any]]] = {
    "nio_gradcosine": dict.fromkeys(nio_gradcosine.CLAIM.arms, NIO),
    "reinit_figure2": {},
    "reinit_table1": {
        (method, signal): {"test": accuracy, "fit": 99.0}
        for signal, row in reinit_table1.PUBLISHED.items()
        for method, (accuracy, _) in row.items()
    },
    "reinit_table5": {
        (column, penalty): {"test": accuracy, "fit": 99.0}
        for column, row in reinit_table5.PUBLISHED.items()
        for penalty, accuracy in zip(reinit_table5.PENALTIES, row, strict=True)
    },
    "seal_ascent": {"matched": {"training accuracy (%)": trace(20.0, 94.0)}},
    "seal_knn_depth": {
        name: {"accuracy of the probe (%)": y, "depth": d, "fit": 99.0, "low": 20.0, "chance": 10}
        for name, (y, d) in PROBES.items()
    },
    "swr_bounds": {swr_bounds.PLAIN: VANILLA, swr_bounds.SWR: SWR}
    | {COLOUR_PLAIN: VANILLA, COLOUR_SWR: SWR},
    "swr_decay": {
        name: {"kept": kept, "early growth": 25.0, "best": 95.0, "final": final}
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
    "wc_weights": {
        (phase, arm): WC_WEIGHTS if arm == WC else PLAIN_WEIGHTS for phase in PHASES for arm in ARMS
    },
}
"""Quantities by claim and arm with which every condition just holds and every figure is right."""


def judge(
    name: str,
    arm: Any = None,
    changes: Mapping[str, Any] | None = None,
    images: ClaimCondition = FOUND,
) -> dict[str, Any]:
    """Return "statement: what" -> verdict, or whether a condition holds. Two seeds.

    changes: quantities of one arm; a tuple has one value per seed.
    """
    runs = Runs({a: [deepcopy(dict(q)) for _ in range(2)] for a, q in QUANTITIES[name].items()})
    for quantity, value in (changes or {}).items():
        values = value if isinstance(value, tuple) else (value, value)
        for run, changed in zip(runs[arm], values, strict=True):
            assert quantity in run
            run[quantity] = changed
    results: dict[str, Any] = {}
    for outcome in CLAIMS.load(name).judge(runs, images).statements:
        results |= {f"{outcome.name}: {c.what}": c.holds for c in outcome.conditions}
        results |= {f"{outcome.name}: {f.what}": f.verdict for f in outcome.figures}
    return results


@pytest.mark.parametrize("name", QUANTITIES)
def test_quantities_as_published_are_reproduced(name: str) -> None:
    assert set(judge(name).values()) == {True, "reproduced"}


@pytest.mark.parametrize("name", CLAIMS.names())
def test_published_figures_and_bounds_are_those_of_the_recorded_outcome(name: str) -> None:
    recorded = load_recorded(name)
    assert recorded is not None
    quantities = QUANTITIES.get(name, {})
    runs = Runs({arm: [dict(values)] * 2 for arm, values in quantities.items()})
    for ours, statement in zip(
        CLAIMS.load(name).judge(runs, FOUND).statements, recorded.statements, strict=True
    ):
        assert {(f.what, f.published) for f in ours.figures} == {
            (f.what, f.published) for f in statement.figures
        }
        assert {(c.what, c.required) for c in ours.conditions[-1:]} <= {
            (c.what, c.required) for c in statement.conditions
        }


def test_without_colour_images_their_statements_are_not_testable() -> None:
    for name in ("swr_bounds", "swr_figure1", "wc_weights"):
        statements = CLAIMS.load(name).card.statements
        results = judge(name, images=NOT_FOUND)
        for part, statement in statements.items():
            shown = [value for what, value in results.items() if what.startswith(f"{part}: ")]
            assert (shown == [False]) == statement.colour


DIRECTION, NOT = "direction only", "not reproduced"
BN, BN_RAISED = ("with BN", "gc"), ("with BN", "gc_gn_sqrt")
FACTOR = {"gc: with BN: one factor a tensor": NOT}
FALL, RETURN = (
    f"forgetting: generation 3: accuracy {end}" for end in ("after the ascent", "at its end")
)
PROBE, BLOCK = "accuracy of the probe (%)", "early blocks: block"
LEAD_LLF, LEAD_NORMAL = (f"{BLOCK} 2: seal - {other} (points)" for other in ("llf", "normal"))
DEPTH = "early blocks: mean prediction depth (blocks)"
GROWTH = "bound: vanilla: growth of the norm, last half"
GROWTH_APART = "bound: growth of the norm, last half: vanilla - SWR"
VANILLA_FIT = "training accuracy of vanilla"
KEPT = "growth of the norm kept"
DECLINE = "theorem 1: mlp, without: accuracy from c = 0.9 to 0.1"
MORE = "gain: with correction: gain by training on"
COMPARABLE = {
    f"warm-start: warm-start, final: SWR comparable to {other}": NOT
    for other in ("L2", "L2 Init", "S&P", "head reset")
}
DEAD = "spread: first convolution, end: dead weights, |w| < 0.01 (%)"
LARGEST = "bound: first convolution, start: largest |w| of all epochs"
LESS = "spread: end: difference in dead weights (points), first and later layers"
IN_BOUND = "bound: with: largest |w|, all layers and epochs"
CHANGES: dict[str, list[tuple[Any, dict[str, Any], dict[str, Any]]]] = {
    "nio_gradcosine": [
        (BN, {"GC after": 0.1}, {"gc: with BN: GC": NOT}),
        (BN, {"GC after": (0.5, 0.1)}, {"gc: with BN: GC": DIRECTION}),
        (BN, {"GC before": 0.995, "GC after": 0.999}, {"gc: initial GC": False}),
        (BN, {"GN after": 5.5}, {}),
        (BN, {"GN after": (1.0, 5.51)}, {"gc: with BN: largest GN after": NOT}),
        (BN, {"misfit": (1e-3, 0.0)}, FACTOR),
        (BN, {"still zero": (1, 2)}, FACTOR),
        (BN, {"of a weight": (0.009, 1.0)}, FACTOR),
        (BN, {"smallest factor": (-0.1, 0.0)}, FACTOR),
        (BN_RAISED, {"GC after": 0.1}, {}),
        (BN_RAISED, {"GN after": (0.5, 4.0)}, {"gc_gn_sqrt: with BN: GN, cap 5": DIRECTION}),
        (
            BN_RAISED,
            {"GN before": 3.9, "GN after": (1.0, 4.0)},
            {"gc_gn_sqrt: with BN: GN, cap 5": NOT},
        ),
        (
            BN_RAISED,
            {"GN before": (6.0, 1.0), "GN after": 5.5},
            {"gc_gn_sqrt: initial GN, in units of its cap": False},
        ),
        (
            BN_RAISED,
            {"GN after": 3.7},
            {"gc_gn_sqrt: largest GN, in units of its cap": False},
        ),
        (BN_RAISED, {"GN after": (3.7, 4.0)}, {}),
    ],
    "reinit_table1": [
        (("LW", 1.0), {"test": 66.0}, {}),
        (("LW", 1.0), {"test": (60.0, 72.3)}, {}),
        (("LW", 1.0), {"test": 60.0}, {"table: signal 1: LW": DIRECTION}),
        (("LW", 1.0), {"test": 50.0}, {"table: signal 1: LW": NOT}),
        (("BL", 1.0), {"test": 70.0}, {"table: signal 1: BL": NOT}),
        (("BL", 2.0), {"fit": (98.9, 99.0)}, {"table: training accuracy of BL": False}),
        (("LW", 2.0), {"fit": 50.0}, {}),
    ],
    "reinit_table5": [
        (("Baseline", 0.0), {"test": (0.21, 0.23)}, {}),
        (("Baseline", 0.0), {"test": (0.22, 0.24)}, {"table: L2 0: Baseline": NOT}),
        (("Baseline", 0.005), {"test": (0.40, 0.42)}, {"table: L2 0.005: Baseline": DIRECTION}),
        (("LW", 0.01), {"test": (0.70, 0.72)}, {"table: L2 0.01: LW": DIRECTION}),
        (("LW", 0.01), {"test": (0.40, 0.42)}, {"table: L2 0.01: LW": NOT}),
        (("LW", 0.01), {"test": (0.45, 0.65)}, {"table: L2 0.01: LW": NOT}),
        (("Baseline", 0.0), {"fit": 98.9}, {"table: training accuracy without penalty": False}),
        (("Baseline", 0.01), {"fit": 50.0}, {}),
    ],
    "seal_ascent": [
        ("matched", {"training accuracy (%)": y}, verdicts)
        for y, verdicts in (
            (trace(49.0, 75.0), {FALL: DIRECTION, RETURN: DIRECTION}),
            (trace(50.0, 60.0), {FALL: NOT, RETURN: NOT}),
            (trace(99.0, 99.0), {FALL: NOT, RETURN: NOT}),
            (
                trace(20.0, 94.0, first=98.0),
                {"forgetting: training accuracy before an ascent": False},
            ),
        )
    ],
    "seal_knn_depth": [
        ("seal", {PROBE: [80.0, 71.4 + 9.3, 95.0, 97.0]}, {}),
        ("seal", {PROBE: [80.0, 72.4, 95.0, 97.0]}, {LEAD_LLF: DIRECTION, LEAD_NORMAL: DIRECTION}),
        ("seal", {PROBE: [80.0, 71.4, 95.0, 97.0]}, {LEAD_LLF: NOT, LEAD_NORMAL: DIRECTION}),
        ("seal", {PROBE: [65.0, 90.0, 95.0, 97.0]}, {f"{BLOCK} 1: accuracy (%)": DIRECTION}),
        ("seal", {PROBE: [80.0, 90.0, 79.0, 97.0]}, {f"{BLOCK} 3: accuracy (%)": NOT}),
        ("seal", {"depth": 3.0}, {DEPTH: NOT}),
        ("llf", {"depth": 3.0}, {DEPTH: DIRECTION}),
        (
            "seal",
            {"low": (30.0, 20.0)},
            {"early blocks: training accuracy after SEAL's ascents": False},
        ),
        ("llf", {"low": 30.0}, {}),
        (
            "llf",
            {"fit": (98.9, 99.0)},
            {"early blocks: training accuracy at the end, all methods": False},
        ),
        (
            "normal",
            {PROBE: [60.0, 87.5, 80.0, 95.0]},
            {f"{BLOCK} 2: accuracy of normal": False, LEAD_NORMAL: DIRECTION},
        ),
    ],
    "swr_bounds": [
        (
            swr_bounds.SWR,
            {"largest share": (1.0, 1.01)},
            {"bound: SWR: norms under the bound of Theorem 2": NOT},
        ),
        (swr_bounds.PLAIN, {"late growth": -0.1}, {GROWTH: NOT, GROWTH_APART: NOT}),
        (swr_bounds.SWR, {"late growth": (2.5, 0.1)}, {GROWTH_APART: DIRECTION}),
        (
            swr_bounds.PLAIN,
            {"least share": (1.0, 0.99)},
            {"bound: largest norm of vanilla, in units of the bound": False},
        ),
        (
            swr_bounds.SWR,
            {"mean test": (96.5, 98.0)},
            {"accuracy: test accuracy: SWR - vanilla": DIRECTION},
        ),
        (swr_bounds.PLAIN, {"fit": 98.9}, {f"accuracy: {VANILLA_FIT}": False}),
        (COLOUR_PLAIN, {"fit": 98.9}, {f"balancedness: {VANILLA_FIT}": False}),
        (COLOUR_SWR, {"fit": 94.0}, {}),
        (
            COLOUR_SWR,
            {"fit": (93.9, 99.0)},
            {"balancedness: difference in training accuracy, vanilla and SWR": False},
        ),
        (
            COLOUR_SWR,
            {"mean balance": 0.7, "imbalance": 1.1},
            {
                "balancedness: balancedness: SWR - vanilla": NOT,
                "balancedness: Definition 2, change of the layers' ratios: vanilla - SWR": NOT,
            },
        ),
    ],
    "swr_decay": [
        ("vanilla", {"kept": 0.94}, {f"norms: vanilla: {KEPT}": DIRECTION}),
        ("vanilla", {"kept": 0.5}, {f"norms: vanilla: {KEPT}": NOT}),
        ("SWR", {"kept": 0.51}, {f"norms: SWR: {KEPT}": DIRECTION}),
        ("SWR", {"kept": 1.1}, {f"norms: SWR: {KEPT}": NOT}),
        ("SWR + re-init", {"kept": 0.81}, {f"norms: SWR + re-init: {KEPT}": DIRECTION}),
        ("vanilla", {"early growth": 24.0}, {"norms: vanilla: growth until the first drop": False}),
        ("SWR", {"early growth": 5.0}, {}),
        ("SWR", {"early growth": 4.9}, {"norms: SWR: growth until the first drop": False}),
        ("SWR", {"best": (95.1, 95.0)}, {"accuracy: best test accuracy of SWR": False}),
        (
            "SWR + re-init",
            {"final": 90.0},
            {"accuracy: test accuracy: SWR + re-init - SWR": NOT},
        ),
    ],
    "swr_figure1": [
        (
            "mlp",
            {"same with": ([1.0] * 5, [1.0, 0.999, 1.0, 1.0, 1.0])},
            {"theorem 1: mlp, with correction: predictions kept, least": NOT},
        ),
        ("mlp", {"after without": [80, 70, 72, 30, 10]}, {DECLINE: DIRECTION}),
        (
            "mlp",
            {"after without": ([80, 70, 71, 30, 10], [80, 70, 73, 30, 10])},
            {DECLINE: DIRECTION},
        ),
        ("mlp", {"after without": ([80, 70, 69, 30, 10], [80, 70, 75, 30, 10])}, {}),
        ("mlp", {"after without": [90] * 5}, {DECLINE: NOT}),
        ("mlp", {"last": (89.9, 90.0)}, {"theorem 1: mlp: test accuracy before scaling": False}),
        (GAIN, {"later with": ([96.0] * 5, [96.0, 96.0, 96.0, 96.0, 95.2])}, {MORE: DIRECTION}),
        (GAIN, {"later with": [96.0, 96.0, 94.5, 96.0, 96.0]}, {MORE: NOT}),
        (GAIN, {"fit": 98.9}, {"gain: training accuracy before scaling": False}),
        (GAIN, {"best": 95.1}, {"gain: best test accuracy before scaling": False}),
    ],
    "swr_scenarios": [
        ((WARM, "SWR"), {"final": 83.6}, {}),
        ((WARM, "SWR"), {"final": 83.4}, COMPARABLE),
        (
            (WARM, "SWR"),
            {"final": (79.0, 89.0)},
            {"warm-start: warm-start, final: SWR above vanilla": DIRECTION},
        ),
        (
            (WARM, "cold"),
            {"final": (79.0, 81.0)},
            {
                "warm-start: gap that a warm start leaves: final accuracy, cold - vanilla": False,
                "warm-start: warm-start, final: cold above vanilla": NOT,
            },
        ),
        (
            (WARM, "vanilla"),
            {"first fit": 98.9, "last fit": 50.0},
            {f"warm-start: {VANILLA_FIT}, end of the first stage": False},
        ),
        (
            (FULL, "vanilla"),
            {"last fit": 98.9, "first fit": 50.0},
            {f"continual-full: {VANILLA_FIT}, end of the last stage": False},
        ),
        (
            (FULL, "S&P"),
            {"drop": (-1.0, 3.0), "later": 80.0},
            {
                "continual-full: continual-full, drop: S&P above 0": DIRECTION,
                "continual-full: continual-full, later: S&P above vanilla": NOT,
            },
        ),
        (
            (LIMITED, "vanilla"),
            {"last fit": 98.9},
            {f"continual-limited: {VANILLA_FIT}, end of the last stage": False},
        ),
        (
            (LIMITED, "L2"),
            {"switch": 86.0, "later": 84.6},
            {
                "continual-limited: continual-limited, switch: SWR above L2": NOT,
                "continual-limited: continual-limited, later: S&P comparable to L2": NOT,
            },
        ),
    ],
    "wc_weights": [
        (
            (START, PLAIN),
            {"peak": 0.99},
            {f"bound: largest |w| without compander, in units of the bound {BOUND:.3f}": False},
        ),
        ((START, WC), {"largest": 2.5}, {LARGEST: NOT}),
        ((START, WC), {"largest": (2.5, 1.0)}, {LARGEST: DIRECTION}),
        ((START, WC), {"peak": (1.0, 0.5)}, {IN_BOUND: NOT}),
        ((END, WC), {"peak": (1.0, 0.5)}, {IN_BOUND: NOT}),
        (
            (END, WC),
            {"start": [0.1] * 8 + [0.1001]},
            {"bound: epoch 0: percentiles of all layers": NOT},
        ),
        ((END, WC), {"fit": 89.9}, {"spread: difference in training accuracy": False}),
        ((END, PLAIN), {"fit": 94.9}, {"spread: training accuracy without compander": False}),
        (
            (END, PLAIN),
            {"dead": 4.9},
            {"spread: dead weights without compander": False, DEAD: NOT},
        ),
        ((END, WC), {"dead": (80.0, 19.0)}, {DEAD: DIRECTION}),
        ((END, WC), {"later": 0.0}, {LESS: NOT}),
        (
            (END, WC),
            {"width": 0.1},
            {"spread: first convolution, end: 16th to 84th percentile": NOT},
        ),
    ],
}
"""Arm, changed quantities, and the conditions and figures that this changes, by claim."""


@pytest.mark.parametrize(
    ("name", "arm", "changes", "expected"),
    [(name, *change) for name, changes in CHANGES.items() for change in changes],
)
def test_a_change_moves_these_verdicts_alone(
    name: str, arm: Any, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    before, after = judge(name), judge(name, arm, changes)
    assert {what: after[what] for what in after if after[what] != before[what]} == expected
