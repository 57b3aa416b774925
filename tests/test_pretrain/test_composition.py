"""Which methods share a recipe, in which order they act, and what the others are told."""

from itertools import combinations
from pathlib import Path

import pytest
from support.cases import read_cases
from support.pretrain import source, tiny, weights

from fsbench.core.errors import UnknownName, UsageError
from pretrain import METHODS
from pretrain.methods.dsd import Dsd
from pretrain.methods.powerprop import Powerprop
from pretrain.recipes import registry
from pretrain.recipes.recipe import (
    INITS,
    INNER_LOOPS,
    META,
    REFUSALS,
    REPARAMETRIZATIONS,
    ActingOrder,
    MethodSettings,
    require_composable,
)
from pretrain.training.episodes import InnerLoop, MetaLearner
from pretrain.training.loop import train_recipe

PAIRS = read_cases("compositions")
STUDY = ("dsd", "fc", "imp", "kels", "llf", "lw", "wels", "welsr")


def methods(*names: str) -> list[MethodSettings]:
    return [METHODS.load(name)() for name in names]


def test_the_tables_name_the_methods_that_exist() -> None:
    named = {name for pair in REFUSALS for name in pair.first | pair.second}
    assert named <= set(METHODS.names())
    learners = {name for name, kind in METHODS.items() if issubclass(kind, MetaLearner)}
    assert learners == META
    assert {name for name in learners if issubclass(METHODS.load(name), InnerLoop)} == INNER_LOOPS
    by_rank = {
        rank: {n for n, kind in METHODS.items() if rank == kind.RANK} for rank in ActingOrder
    }
    assert by_rank[ActingOrder.REPARAMETRIZATION] == REPARAMETRIZATIONS
    assert by_rank[ActingOrder.INIT] == INITS


@pytest.mark.parametrize(
    ("names", "says"),
    [
        *(("+".join(pair), "would follow neither paper") for pair in combinations(STUDY, 2)),
        *PAIRS["refused"].items(),
    ],
)
def test_pairs_are_refused_with_their_reason(names: str, says: str) -> None:
    pair = names.split("+")
    for order in (pair, pair[::-1]):
        with pytest.raises(UsageError, match=says) as caught:
            require_composable(methods(*order))
        assert caught.value.fix


@pytest.mark.parametrize("names", PAIRS["composed"])
def test_these_compose(names: str) -> None:
    require_composable(methods(*names.split("+")))


def test_settings_decide_who_minds_zeros() -> None:
    """A power and a zero fill; a sparse phase beside an inner loop."""
    zero = Dsd(fill="zero")
    with pytest.raises(UsageError, match="zero for ever"):
        require_composable([zero, Powerprop()])
    require_composable([zero, Powerprop(alpha=1.0)])
    with pytest.raises(UsageError, match="would bring pruned weights back"):
        require_composable([Dsd(sparse_epochs=1), *methods("maml")])


@pytest.mark.parametrize("pair", ["swr+seal+metasgd", "weight_norm+protonet"])
def test_meta_learners_train_beside_others(pair: str, tmp_path: Path) -> None:
    recipe = registry.compose_methods(tiny(pair.rpartition("+")[2]), pair)
    run = train_recipe(recipe, source(), tmp_path / "run")
    assert all(tensor.isfinite().all() for tensor in weights(run).values())


def test_a_composed_recipe_keeps_plan_and_settings_and_is_named_by_the_order_of_action() -> None:
    plain = registry.load_recipe("toy/seal").override(["seal.ascent_factor=0.5", "plan.rounds=3"])
    both = registry.compose_methods(plain, "swr+seal+weight_compander", {"swr.lam": "1e-2"})
    assert both.name == "toy/weight_compander+seal+swr"
    assert both.label == "toy-weight_compander+seal+swr-s0"
    assert both.plan == plain.plan
    assert both.method("seal").ascent_factor == 0.5  # type: ignore[attr-defined]
    assert both.method("swr").lambda_f == 0.01  # type: ignore[attr-defined]
    assert {**dict(both), "name": "", "methods": ()} == {**dict(plain), "name": "", "methods": ()}


def test_a_method_that_comes_in_has_the_settings_of_the_scale_and_values_may_help() -> None:
    both = registry.compose_methods(registry.load_recipe("toy/normal"), "swr+lw")
    assert both.method("lw").generations is True  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="goes through 16 blocks"):
        registry.compose_methods(registry.load_recipe("paper/normal"), "swr+lw")
    one = registry.load_recipe("toy/normal").override(["plan.rounds=1"])
    with pytest.raises(UsageError, match="llf would never act"):
        registry.compose_methods(one, "llf")
    assert registry.compose_methods(one, "llf", {"plan.rounds": 2}).name == "toy/llf"


@pytest.mark.parametrize(
    ("names", "error", "says"),
    [
        ("swr+weight_compandr", UnknownName, "did you mean 'weight_compander'"),
        ("swr+", UnknownName, "unknown method ''"),
        ("swr+swr", UsageError, "given twice"),
        ("wels+fc", UsageError, "wels and fc|fc and wels"),
    ],
)
def test_what_is_no_composition_is_refused(names: str, error: type[UsageError], says: str) -> None:
    with pytest.raises(error, match=says):
        registry.compose_methods(registry.load_recipe("toy/normal"), names)
