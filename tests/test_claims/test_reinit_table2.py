"""Table 2 of the study and its consequences, against numbers computed by hand."""

from math import comb

import pytest
from support.claims import judge_planted

from fsbench.claims import reinit_figure2, reinit_table3
from pretrain.recipes.reinit_study import load_table2, table2_methods, table2_networks


def test_the_table_holds_432_figures_each_setting_once() -> None:
    rows = load_table2()
    assert len(rows) * len(table2_methods()) == 432
    assert len({row[:3] for row in rows}) == 72
    last = rows[-1]
    assert last[:3] == ("augmentation+dropout", "birds2010", "resnet50")
    assert last.accuracy == dict(
        zip(table2_methods(), (11.5, 14.8, 13.3, 15.2, 13.5, 13.3), strict=True)
    )
    assert (last.error["DSD"], last.train_images, last.classes) == (0.7, 3000, 200)


def two_sided(wins: int, losses: int) -> float:
    """Exact two-sided p of a fair coin."""
    n = wins + losses
    return min(1.0, 2 * sum(comb(n, k) for k in range(min(wins, losses) + 1)) / 2**n)


@pytest.mark.parametrize("network", table2_networks())
def test_p_values_are_exact_and_corrected_step_down(network: str) -> None:
    comparisons = reinit_table3.compare_methods(network)
    ordered = [
        comparisons[pair]
        for pair in comparisons
        if table2_methods().index(pair[0]) < table2_methods().index(pair[1])
    ]
    assert len(ordered) == 15
    largest = 0.0
    for rank, pair in enumerate(sorted(ordered, key=lambda pair: pair.p)):
        assert pair.p == pytest.approx(two_sided(pair.wins, pair.losses))
        largest = max(largest, min(1.0, (15 - rank) * pair.p))
        assert pair.holm == pytest.approx(largest)


@pytest.mark.parametrize(
    ("network", "better", "worse", "p"),
    [
        ("scnn", "LW", "BL", 2.7e-4),
        ("vgg16", "LW", "BL", 1.4e-4),
        ("mobilenet", "LW", "BL", 7.6e-6),
        ("resnet50", "LW", "BL", 1.4e-4),
        ("vgg16", "FC", "LW", 7.5e-3),
    ],
)
def test_p_values_of_an_independent_computation(
    network: str, better: str, worse: str, p: float
) -> None:
    pair = reinit_table3.compare_methods(network)[better, worse]
    assert pair.significant
    assert pair.p == pytest.approx(p, rel=0.05)


def test_table_3_reports_that_lw_does_not_beat_fc_on_vgg16() -> None:
    outcome = judge_planted(reinit_table3.CLAIM, {})["sign tests"]
    failed = {f.what: f.verdict for f in outcome.figures if f.verdict != "reproduced"}
    assert failed == {"scnn: LW > FC": "direction only", "vgg16: LW > FC": "not reproduced"}
    assert outcome.verdict == "direction only"


def test_the_best_method_of_a_tie_has_the_smaller_error() -> None:
    tied = next(r for r in load_table2() if r[:3] == ("plain", "birds2010", "resnet50"))
    assert [m for m, v in tied.accuracy.items() if v == 10.0] == ["DSD", "WELS", "LW"]
    assert reinit_figure2.select_best_method(tied) == "DSD"


def test_the_tree_is_as_small_as_the_paper_s() -> None:
    tree = reinit_figure2.fit_tree()[0]
    assert tree.get_depth() <= 4
    leaves = tree.tree_.children_left == -1
    assert tree.tree_.n_node_samples[leaves].min() >= 7


def test_figure_2_says_fc_on_vgg16_and_lw_elsewhere() -> None:
    outcome = judge_planted(reinit_figure2.CLAIM, {})["tree"]
    assert [f.published for f in outcome.figures] == ["LW", "FC"]
    assert outcome.verdict == "reproduced"
