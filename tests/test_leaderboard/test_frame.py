"""What a frame marks, by hand: the best and its ties, gains over the control, flags, the mean."""

from dataclasses import replace

import pytest
from support.sheets import COLUMNS, ERROR, constant, swinging, view

from fsbench.core.errors import UnknownName
from fsbench.core.tasks import Track
from leaderboard.render.frame import OVERALL, ScoreFrame, make_frame, make_frames

ONE, FIVE = COLUMNS


def marks(frame: ScoreFrame, column: str = ONE) -> dict[str, tuple[bool, str]]:
    scores = {name: frame.scores[name][column] for name in frame.lines}
    return {name: (frame.is_best(score), score.mark) for name, score in scores.items()}


def test_best_of_each_column_and_what_no_test_tells_from_it() -> None:
    entries = {
        "first": {ONE: constant(0.6), FIVE: constant(0.7)},
        "near": {ONE: swinging(0.6 - 1.9 * ERROR), FIVE: constant(0.9)},  # p .057
        "far": {ONE: swinging(0.6 - 3.5 * ERROR), FIVE: constant(0.5)},  # p .0005
    }
    frame = make_frame(view(entries))
    assert marks(frame, ONE) == {"first": (True, ""), "near": (True, ""), "far": (False, "")}
    assert marks(frame, FIVE) == {"first": (False, ""), "near": (True, ""), "far": (False, "")}


def test_marks_against_the_control_after_holm() -> None:
    """t 2.2 of 99 is p .030 alone; with two comparisons Holm doubles it, and nothing is marked.

    What is worse is marked as such; the control never is.
    """
    control = {ONE: constant(0.5)}
    by_gap = {gap: {ONE: swinging(0.5 + gap * ERROR)} for gap in (2.2, 0.1, -5)}
    alone = make_frame(view({"control": control, "up": by_gap[2.2]}, (ONE,)), "control")
    assert marks(alone)["up"][1] == "†"
    assert alone.scores["up"][ONE].p == pytest.approx(0.03013, abs=1e-5)
    entries = {"control": control, "up": by_gap[2.2], "like": by_gap[0.1]}
    both = make_frame(view(entries, (ONE,)), "control")
    assert marks(both)["up"][1] == ""
    up = both.scores["up"][ONE]
    assert up.p == pytest.approx(2 * 0.03013, abs=1e-5)
    assert up.gap == pytest.approx(2.2 * ERROR)
    assert up.gap_ci95 == pytest.approx(1.96 * ERROR)
    table = view({"control": control, "down": by_gap[-5]}, (ONE,))
    worse = make_frame(table, "control")
    assert marks(worse) == {"control": (True, ""), "down": (False, "‡")}
    text = " ".join(worse.write_caption())
    assert "‡ worse than control (" in text
    assert "†" not in text, "only marks that occur are explained"
    assert marks(make_frame(table))["down"] == (False, "")


def test_overall_is_the_mean_and_knows_that_columns_share_episodes() -> None:
    entries = {"a": {ONE: swinging(0.5), FIVE: swinging(0.7)}, "half": {ONE: constant(0.1)}}
    scores = make_frame(view(entries)).scores
    a = scores["a"][OVERALL]
    assert a.mean == pytest.approx(0.6)
    # Both columns swing together, so their mean swings as much: no sqrt(2) is gained.
    assert a.ci95 == pytest.approx(1.96 * ERROR)
    assert list(scores["half"]) == [ONE]
    alone = make_frame(view({"a": {ONE: constant(0.5)}}, (ONE,)))
    assert alone.columns == (ONE,)
    assert not [s for s in alone.write_caption() if s.startswith("Overall")]


@pytest.mark.parametrize(
    ("flags", "letters", "where"),
    [
        ({"a": {ONE: ("short",)}}, {"short": "a"}, {("a", ONE), ("a", OVERALL)}),
        ({"a": {ONE: ("short",), FIVE: ("short",)}}, {"short": "a"}, {("a", "")}),
        ({"b": {FIVE: ("short",)}}, {"short": "a"}, {("b", FIVE), ("b", OVERALL)}),
        ({n: dict.fromkeys(COLUMNS, ("short",)) for n in "ab"}, {}, set()),
    ],
)
def test_a_letter_stands_once_per_row_and_is_a_sentence_if_all_have_the_flag(
    flags: dict[str, dict[str, tuple[str, ...]]],
    letters: dict[str, str],
    where: set[tuple[str, str]],
) -> None:
    entries = {name: {ONE: constant(0.5), FIVE: constant(0.6)} for name in "ab"}
    frame = make_frame(view(entries, flags=flags))
    assert frame.letters == letters
    spots = {(row, column) for row in ("", "a", "b") for column in ("", *frame.columns)}
    assert {spot for spot in spots - {("", "")} if frame.mark(*spot)} == where
    sign = "a" if letters else "All numbers"
    assert f"{sign}: short (fewer episodes than the spec), not official." in frame.write_caption()


def test_the_caption_names_marks_that_occur_and_the_title_what_is_shared() -> None:
    entries = {"a": {ONE: constant(0.5), FIVE: constant(0.6)}, "b": {FIVE: constant(0.6)}}
    table = view(entries, notes=("as noted", "twice."))
    text = " ".join(make_frame(table, "a").write_caption())
    assert "Nothing is significantly better or worse than a (" in text
    assert "as noted. twice. Bold: the best of a column" in text
    assert make_frame(table).title == "mine: linear@ibm 64px"
    extra = Track(protocol="ibm", input_size=64, adaptation="linear", extra=True)
    assert make_frame(replace(table, track=extra)).title == "mine: linear ibm 64px extra columns"
    assert make_frame(view({"a": entries["b"]}, (FIVE,))).title == "mine: ibm 64px"
    assert "marked against" in " ".join(make_frame(table, "elsewhere").write_caption())
    with pytest.raises(UnknownName, match="did you mean"):
        make_frames([table], "aa")
