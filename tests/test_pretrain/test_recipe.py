"""Recipes: typed overrides, digests, refusals that name the field."""

import pytest
from support.cases import read_cases
from support.pretrain import tiny

from fsbench.core.errors import UsageError
from pretrain.methods.llf import LLF
from pretrain.methods.normal import Normal
from pretrain.methods.seal import Seal
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe

REFUSED = read_cases("refused_recipes")
SEAL = registry.load_recipe("toy/seal")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("lr=1e-3", lambda r: r.lr == 0.001),
        ("plan.rounds=3", lambda r: r.plan.rounds == 3),
        ("seal.ascent_factor=0.02", lambda r: r.method("seal").ascent_factor == 0.02),
        ("seal.ascent_decay=0", lambda r: r.method("seal").ascent_decay == 0),
        ("seal.threshold=layer4", lambda r: r.method("seal").threshold == "layer4"),
        ("width=null", lambda r: r.width is None),
        ("width=none", lambda r: r.width is None),
        ("channels_last=false", lambda r: r.channels_last is False),
        ("milestones=[0.3, 0.6]", lambda r: r.milestones == (0.3, 0.6)),
        ("source=folder:a=b", lambda r: r.source == "folder:a=b"),
        ('plan.stages=[{"stop": 0.5}, {}]', lambda r: [s.stop for s in r.plan.stages] == [0.5, 1]),
    ],
)
def test_override_sets_typed_fields(text: str, read: object) -> None:
    changed = SEAL.override([text])
    assert callable(read)
    assert read(changed)
    assert isinstance(changed.method("seal"), Seal)


def test_overrides_change_the_digest_and_defaults_do_not() -> None:
    assert SEAL.override([f"lr={SEAL.lr}"]).digest() == SEAL.digest()
    digests = {
        SEAL.override([text]).digest() for text in ("lr=1", "seed=1", "seal.ascent_factor=1")
    }
    assert len(digests | {SEAL.digest()}) == 4


@pytest.mark.parametrize(("method", "case"), [(m, c) for m in REFUSED for c in REFUSED[m]])
def test_what_does_not_fit_is_refused_with_the_way_out(method: str, case: list[str]) -> None:
    settings, *texts = case
    with pytest.raises(UsageError) as caught:
        tiny(method, *settings.split())
    assert all(text in str(caught.value) for text in texts)
    assert caught.value.fix


def test_seal_without_ascent_may_have_short_rounds() -> None:
    assert SEAL.override(["seal.ascent_share=0", "plan.epochs=3"]).plan.epochs == 3


def test_methods_are_sorted_by_rank_and_distinct() -> None:
    fields = dict(SEAL)
    both = Recipe.model_validate({**fields, "methods": (Seal(), LLF())})
    assert [method.name for method in both.methods] == ["llf", "seal"]
    same = Recipe.model_validate({**fields, "methods": (LLF(), Seal())})
    assert both.digest() == same.digest()
    with pytest.raises(ValueError, match="given twice"):
        Recipe.model_validate({**fields, "methods": (Normal(), Normal())})


def test_the_streams_of_data_and_weights_ignore_the_method() -> None:
    for purpose in ("init", "order", "augmentation"):
        assert SEAL.stream(purpose) == registry.load_recipe("toy/llf").stream(purpose)
        assert SEAL.stream(purpose) != SEAL.override(["seed=1"]).stream(purpose)
