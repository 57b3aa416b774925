"""The shared set-up of the SWR claims: the paper's training, and the paired verdict."""

from typing import TYPE_CHECKING

import pytest

from fsbench.claims import _runs, _swr, require_two_seeds
from fsbench.claims._swr import PairedDifference
from fsbench.core.errors import UsageError

if TYPE_CHECKING:
    from pretrain.training.context import Context


def test_the_recipe_is_the_papers_training() -> None:
    recipe = _swr.build_swr_recipe({"name": "swr", "lam": 0.5}, 3, 7, 16, "warm-start", lr=0.1)
    assert (recipe.optimizer, recipe.lr, recipe.weight_decay, recipe.batch_size) == (
        "adam",
        0.1,
        0,
        16,
    )
    assert (recipe.schedule, recipe.augmentation, recipe.label_smoothing) == ("constant", "none", 0)
    assert (recipe.opt_reset, recipe.seed, recipe.plan.epochs) == ("none", 3, 7)
    assert [stage.stop for stage in recipe.plan.stages] == [0.5, 1]
    assert recipe.methods[0].model_dump()["lambda_f"] == 0.5
    assert _swr.build_swr_recipe({"name": "normal"}, 0, 1, 8).lr == 1e-3


def test_a_run_gives_percent_by_epoch_and_stage_and_is_watched() -> None:
    shapes: list[list[tuple[int, ...]]] = []

    def watch(ctx: "Context") -> None:
        shapes.append([tuple(kernel.shape) for kernel in _swr.get_kernels(ctx)])

    recipe = _swr.build_swr_recipe({"name": "normal"}, 0, 2, 16, "warm-start")
    run = _swr.trace_training(recipe, _runs.load_digits_source(0, 64), watch)
    assert len(run.epochs) == 4
    assert run.stages == run.epochs[1::2]
    assert len(run.train) == 4
    assert 5 < min(run.train) <= max(run.train) <= 100
    assert max(run.epochs) > 15
    assert shapes == [[(100, 192), (100, 100), (10, 100)]] * 5


def test_the_paired_difference_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, deviation 1, error 1 / sqrt(3)."""
    gain = _swr.compute_paired_difference([2, 4, 6], [1, 2, 3])
    assert gain == pytest.approx((2, 3**-0.5))
    assert str(gain) == "+2.00 ± 0.58"


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (PairedDifference(1.0, 0.4), "reproduced"),
        (PairedDifference(1.0, 0.6), "direction only"),
        (PairedDifference(0.0, 0.0), "not reproduced"),
        (PairedDifference(-1.0, 0.1), "not reproduced"),
    ],
)
def test_above(gain: PairedDifference, verdict: str) -> None:
    assert _swr.judge_above(gain) == verdict


def test_a_curve_is_the_mean_over_runs() -> None:
    curve = _swr.average_curves("a", [[1, 2], [3, 6]], first=1)
    assert (curve.x, curve.y) == ((1, 2), (2, 4))


def test_one_seed_has_no_standard_deviation() -> None:
    with pytest.raises(UsageError, match="--seeds 1"):
        require_two_seeds(1)
