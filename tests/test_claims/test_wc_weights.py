"""Weight compander's claim: its verdicts on made-up weights, its arms, one tiny real run."""

from typing import Any

import pytest
from support.claims import NOT_FOUND, judge_planted, list_verdicts

from fsbench.claims import _training, wc_weights
from fsbench.claims.engine import ClaimJob, StatementOutcome
from fsbench.claims.wc_weights import (
    ARMS,
    BOUND,
    CLAIM,
    CONTROL,
    END,
    FIRST,
    PHASES,
    PLAIN,
    START,
    WC,
    build_compander_recipe,
    summarize_weights,
)
from fsbench.data.source import SourceDataset
from protocols.analyses.weight_percentiles import WeightSpread

LATER = "layer1.0.conv1"


def spread(largest: float, dead: float, width: float) -> WeightSpread:
    lines = (-1.0, -0.9, -width / 2, -width / 8, 0.0, width / 8, width / 2, 0.9, 1.0)
    return WeightSpread(100, lines, largest, dead)


def weigh(
    largest: float = 0.5,
    dead: float = 0.2,
    width: float = 0.4,
    later: float = 0.3,
    fit: float = 100.0,
    later_start: WeightSpread | None = None,
    later_end: float = 0.1,
) -> dict[str, Any]:
    """Quantities of two epochs: the peak comes first, the rest is read at the end."""
    first = {FIRST: spread(largest, 0.9, 0.1), LATER: later_start or spread(0.1, 0.9, 0.1)}
    last = {FIRST: spread(largest / 2, dead, width), LATER: spread(later_end, later, 0.1)}
    whole = spread(0.1, 0.99, 0.1)
    epochs = [{**epoch, "all": whole} for epoch in (first, last)]
    return {"accuracy": 90.0, "fit": fit, **summarize_weights(epochs)}


def test_quantities_by_hand() -> None:
    weights = weigh(largest=2.0, dead=0.2, width=0.4, later=0.3)
    assert (weights["largest"], weights["largest |w|"]) == (2.0, [2.0, 1.0])
    assert weights["peak"] == pytest.approx(2.0 / BOUND)
    assert (weights["dead"], weights["later"], weights["width"]) == pytest.approx((20, 30, 0.4))
    assert weights["spike"] == pytest.approx(0.25)
    assert weights["w"]["84 %"] == [0.05, 0.2]
    assert len(weights["start"]) == 3 * 9


def judge_arms(plain: list[Any], wc: list[Any]) -> list[StatementOutcome]:
    arms = {PLAIN: plain, WC: wc, CONTROL: [weigh()] * len(plain)}
    runs = {(phase, arm): results for phase in PHASES for arm, results in arms.items()}
    return list(judge_planted(CLAIM, runs).values())


def verdicts(plain: list[Any], wc: list[Any]) -> list[str]:
    return [verdict for s in judge_arms(plain, wc) for verdict in list_verdicts(s.figures)]


SAME, IN, PEAK, DEAD, WIDE, LESS = range(6)
PLAINS = weigh(largest=2.0, dead=0.5, width=0.2, later=0.3)
COMPANDED = weigh(largest=1.0, dead=0.2, width=0.4, later=0.25)


def test_what_the_paper_shows_is_reproduced() -> None:
    outcomes = judge_arms([PLAINS] * 2, [COMPANDED] * 2)
    assert [outcome.verdict for outcome in outcomes] == ["reproduced"] * 2
    ours = [figure.ours for outcome in outcomes for figure in outcome.figures]
    assert ours[IN] == "1.000"
    assert ours[PEAK:] == [
        "2 without, 1 with",
        "50 without, 20 with",
        "0.2 without, 0.4 with",
        "30 first, 5 later",
    ]


@pytest.mark.parametrize(
    ("plain", "wc", "expected"),
    [
        (weigh(largest=1.2, dead=0.5), COMPANDED, ["not testable here", "not reproduced"]),
        (PLAINS, weigh(largest=1.0, fit=80), ["reproduced", "not testable here"]),
        (weigh(largest=2, dead=0.04), COMPANDED, ["reproduced", "not testable here"]),
    ],
)
def test_a_bound_that_bites_equal_learning_and_dead_weights_are_required(
    plain: Any, wc: Any, expected: list[str]
) -> None:
    assert [outcome.verdict for outcome in judge_arms([plain], [wc])] == expected


def test_without_colour_images_nothing_is_testable() -> None:
    outcomes = judge_planted(CLAIM, {}, NOT_FOUND).values()
    assert {outcome.verdict for outcome in outcomes} == {"not testable here"}


@pytest.mark.parametrize(
    ("figure", "wc"),
    [
        (PEAK, weigh(largest=2.5, dead=0.2)),
        (DEAD, weigh(largest=1.0, dead=0.8)),
        (WIDE, weigh(largest=1.0, width=0.1)),
        (LESS, weigh(largest=1.0, dead=0.45, later=0.1)),
    ],
)
def test_the_opposite_is_not_reproduced(figure: int, wc: Any) -> None:
    assert verdicts([PLAINS], [wc])[figure] == "not reproduced"


def test_one_deviating_seed_gives_direction_only() -> None:
    by_figure = verdicts([PLAINS] * 2, [COMPANDED, weigh(2.1, 0.6, 0.19, 0.1)])
    assert by_figure[PEAK:] == ["direction only"] * 4


@pytest.mark.parametrize("outside", [weigh(largest=BOUND), weigh(1.0, later_end=BOUND)])
def test_the_bound_holds_for_every_layer_and_epoch(outside: Any) -> None:
    assert verdicts([PLAINS] * 2, [COMPANDED, outside])[IN] == "not reproduced"


def test_a_different_start_is_detected() -> None:
    other = weigh(largest=1.0, later_start=spread(0.1, 0.9, 0.1001))
    assert verdicts([PLAINS], [other])[SAME] == "not reproduced"


def test_the_control_has_the_rate_that_the_compander_has_at_zero() -> None:
    plain, wc, control = (build_compander_recipe(ClaimJob((END, arm), 0)) for arm in ARMS)
    assert plain.lr == wc.lr == 0.1
    assert control.lr == pytest.approx(0.1 * 2.56)
    assert control.replace({"lr": 0.1}) == plain
    compander: Any = wc.method("weight_compander")
    assert (compander.a, compander.b, compander.decays) == (0.8, 0.5, "w")
    assert pytest.approx(1.2566, abs=1e-4) == BOUND


def test_decay_times_steps_is_the_papers() -> None:
    assert PHASES[END][1] * 60 * 11 == pytest.approx(1e-4 * 200 * 351)
    end, start = (
        build_compander_recipe(ClaimJob((END, PLAIN), 0)),
        build_compander_recipe(ClaimJob((START, PLAIN), 0)),
    )
    assert (start.weight_decay, start.schedule) == (5e-4, "constant")
    assert (end.weight_decay, end.schedule) == (PHASES[END][1], "step")
    assert end.milestones == (0.45, 0.68)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wc_weights, "PHASES", {END: (1, 1e-4, "constant")})


@pytest.mark.usefixtures("short")
def test_a_real_run_starts_from_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(job: ClaimJob, images: int) -> SourceDataset:
        return _training.load_digits_source(job.seed, zoom=2)

    monkeypatch.setattr(_training, "load_colour_source", load)
    plain, wc = (wc_weights.measure(ClaimJob((END, arm), 0)) for arm in (PLAIN, WC))
    assert 5 < plain["fit"] <= 100
    assert 0 < wc["accuracy"] <= 100
    assert wc["start"] == pytest.approx(plain["start"], abs=1e-6)
    assert len(wc["largest |w|"]) == len(wc["w"]["50 %"]) == 2
    assert wc["w"]["16 %"][1] != plain["w"]["16 %"][1]
    assert wc["peak"] < 1
