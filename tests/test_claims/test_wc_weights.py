"""Weight compander's claim: its verdicts on made-up weights, its arms, one tiny real run."""

from typing import Any

import pytest

from fsbench.claims import (
    ClaimCondition,
    ClaimFigure,
    ClaimOutcome,
    ClaimSettings,
    _runs,
    wc_weights,
)
from fsbench.claims.wc_weights import (
    ARMS,
    BOUND,
    CONTROL,
    END,
    FIRST,
    PHASES,
    PLAIN,
    START,
    WC,
    CompanderJob,
    TrainingPhase,
    WeightTrace,
    build_compander_recipe,
    shorten_schedule,
    trace_weights,
)
from fsbench.data.source import SourceDataset
from protocols.analyses.weight_percentiles import WeightSpread

LATER = "layer1.0.conv1"


def spread(largest: float, dead: float, width: float) -> WeightSpread:
    lines = (-1.0, -0.9, -width / 2, -width / 8, 0.0, width / 8, width / 2, 0.9, 1.0)
    return WeightSpread(100, lines, largest, dead)


def trace(
    largest: float = 0.5,
    dead: float = 0.2,
    width: float = 0.4,
    later: float = 0.3,
    train: float = 100.0,
) -> WeightTrace:
    """Two epochs: the peak comes first, the rest is read at the end."""
    first = {FIRST: spread(largest, 0.9, 0.1), LATER: spread(0.1, 0.9, 0.1)}
    last = {FIRST: spread(largest / 2, dead, width), LATER: spread(0.1, later, 0.1)}
    whole = spread(0.1, 0.99, 0.1)
    return WeightTrace([{**epoch, "all": whole} for epoch in (first, last)], 90.0, train)


def outcome(
    monkeypatch: pytest.MonkeyPatch,
    plain: list[WeightTrace],
    wc: list[WeightTrace],
    control: WeightTrace | None = None,
) -> Any:
    arms = {PLAIN: plain, WC: wc, CONTROL: [control or trace()] * len(plain)}
    traces = {START: arms, END: arms}
    there = ClaimCondition(what="images", required="on disk", ours="found", holds=True)
    monkeypatch.setattr(wc_weights, "train_arms", lambda settings, report: traces)
    monkeypatch.setattr(_runs, "require_colour_images", lambda settings: there)
    return wc_weights.run(ClaimSettings(len(plain)))


def figures_of(result: ClaimOutcome) -> list[ClaimFigure]:
    return [figure for statement in result.statements for figure in statement.figures]


def verdicts(
    monkeypatch: pytest.MonkeyPatch, plain: list[WeightTrace], wc: list[WeightTrace]
) -> list[str]:
    return [figure.verdict for figure in figures_of(outcome(monkeypatch, plain, wc))]


SAME, IN, PEAK, DEAD, WIDE, LESS = range(6)
PLAINS = trace(largest=2.0, dead=0.5, width=0.2, later=0.3)
COMPANDED = trace(largest=1.0, dead=0.2, width=0.4, later=0.25)


def test_what_the_paper_shows_is_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    result = outcome(monkeypatch, [PLAINS] * 2, [COMPANDED] * 2)
    assert [statement.verdict for statement in result.statements] == ["reproduced"] * 2
    assert [figure.verdict for figure in figures_of(result)] == ["reproduced"] * 6
    ours = [figure.ours for figure in figures_of(result)]
    assert ours[IN] == "1.000"
    assert ours[PEAK:] == [
        "2 without, 1 with",
        "50 without, 20 with",
        "0.2 without, 0.4 with",
        "30 first, 5 later",
    ]


@pytest.mark.parametrize(
    ("plain", "wc", "verdicts"),
    [
        (trace(largest=1.2, dead=0.5), COMPANDED, ["not testable here", "not reproduced"]),
        (PLAINS, trace(largest=1.0, train=80), ["reproduced", "not testable here"]),
        (trace(largest=2, dead=0.04), COMPANDED, ["reproduced", "not testable here"]),
    ],
)
def test_a_bound_that_bites_equal_learning_and_dead_weights_are_required(
    monkeypatch: pytest.MonkeyPatch, plain: WeightTrace, wc: WeightTrace, verdicts: list[str]
) -> None:
    result = outcome(monkeypatch, [plain], [wc])
    assert [statement.verdict for statement in result.statements] == verdicts


def test_without_colour_images_nothing_is_trained() -> None:
    result = wc_weights.run(ClaimSettings(1))
    assert {statement.verdict for statement in result.statements} == {"not testable here"}


@pytest.mark.parametrize(
    ("figure", "wc"),
    [
        (PEAK, trace(largest=2.5, dead=0.2)),
        (DEAD, trace(largest=1.0, dead=0.8)),
        (WIDE, trace(largest=1.0, width=0.1)),
        (LESS, trace(largest=1.0, dead=0.45, later=0.1)),
    ],
)
def test_the_opposite_is_not_reproduced(
    figure: int, wc: WeightTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdicts(monkeypatch, [PLAINS], [wc])[figure] == "not reproduced"


def test_one_deviating_seed_gives_direction_only(monkeypatch: pytest.MonkeyPatch) -> None:
    by_figure = verdicts(monkeypatch, [PLAINS] * 2, [COMPANDED, trace(2.1, 0.6, 0.19, 0.1)])
    assert by_figure[PEAK:] == ["direction only"] * 4


def test_the_bound_holds_for_every_layer_and_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    for layer in (FIRST, LATER):
        outside = trace(largest=1.0)
        outside.epochs[1][layer] = spread(BOUND, 0.2, 0.4)  # type: ignore[index]
        by_figure = verdicts(monkeypatch, [PLAINS] * 2, [COMPANDED, outside])
        assert by_figure[IN] == "not reproduced"


def test_a_different_start_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    other = trace(largest=1.0)
    other.epochs[0][LATER] = spread(0.1, 0.9, 0.1001)  # type: ignore[index]
    assert verdicts(monkeypatch, [PLAINS], [other])[SAME] == "not reproduced"


def test_the_share_of_the_learning_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    control = trace(largest=1.5, dead=0.47, width=0.5)
    notes = outcome(monkeypatch, [PLAINS], [COMPANDED], control).notes
    shares = [note.rpartition(": ")[2] for note in notes[:4]]
    assert shares == ["50%", "10%", "150%", "no difference"]
    assert notes[4].startswith("accuracy: 90.0 % without")


def test_the_panels_show_percentiles_and_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    without, with_, peaks, dead = outcome(monkeypatch, [PLAINS], [COMPANDED]).panels
    assert len(without.curves) == len(with_.curves) == 9
    assert with_.curves[6].label == "84 %"
    assert with_.curves[6].y == (0.05, 0.2)
    assert [curve.label for curve in peaks.curves] == list(ARMS)
    assert peaks.curves[0].y == (2.0, 1.0)
    assert dead.curves[1].y == pytest.approx((90, 20))


def test_the_control_has_the_rate_that_the_compander_has_at_zero() -> None:
    plain, wc, control = (build_compander_recipe(CompanderJob(END, arm, 0)) for arm in ARMS)
    assert plain.lr == wc.lr == 0.1
    assert control.lr == pytest.approx(0.1 * 2.56)
    assert control.replace({"lr": 0.1}) == plain
    compander: Any = wc.method("weight_compander")
    assert (compander.a, compander.b, compander.decays) == (0.8, 0.5, "w")
    assert pytest.approx(1.2566, abs=1e-4) == BOUND


def test_decay_times_steps_is_the_papers() -> None:
    assert shorten_schedule(10).decay * 10 * 11 == pytest.approx(1e-4 * 200 * 351)
    end, start = (
        build_compander_recipe(CompanderJob(END, PLAIN, 0)),
        build_compander_recipe(CompanderJob(START, PLAIN, 0)),
    )
    assert (start.weight_decay, start.schedule) == (5e-4, "constant")
    assert (end.weight_decay, end.schedule) == (PHASES[END].decay, "step")
    assert end.milestones == (0.45, 0.68)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wc_weights, "PHASES", {END: TrainingPhase(1, 1e-4, "constant")})


@pytest.mark.usefixtures("short")
def test_a_real_run_starts_from_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(settings: ClaimSettings, size: int, images: int, seed: int) -> SourceDataset:
        return _runs.load_digits_source(seed, 1437, zoom=size // 8)

    monkeypatch.setattr(_runs, "load_colour_source", load)
    plain, wc = (trace_weights(CompanderJob(END, arm, 0), ClaimSettings()) for arm in (PLAIN, WC))
    assert 5 < plain.train <= 100
    assert len(plain.epochs) == len(wc.epochs) == 2
    assert plain.epochs[0][FIRST].n == 16 * 3 * 9
    for layer, spread in plain.epochs[0].items():
        other = wc.epochs[0][layer]
        assert other.percentiles == pytest.approx(spread.percentiles, abs=1e-6)
        assert wc.epochs[1][layer].percentiles != other.percentiles
        assert wc.epochs[1][layer].largest < BOUND
    assert plain.epochs[1][FIRST] != wc.epochs[1][FIRST]
    assert 0 < wc.accuracy <= 100
