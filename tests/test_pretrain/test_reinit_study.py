"""The reinitialization study's table as twelve recipes: protocol, rounds and figures as printed."""

from collections import Counter

import pytest
from support.pretrain import published_figures

from pretrain.recipes import registry, reinit_study
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.schedules import lr_factor
from pretrain.weights.surgery import build_on_meta

BLOCKS = {"scnn": 4, "vgg16": 13, "mobilenet": 7, "resnet50": 16}
ENDS = {"": "plain", "_augmented": "augmentation", "_augmented_dropout": "augmentation+dropout"}
NAMES = [f"paper/study_{network}{end}" for network in BLOCKS for end in ENDS]


def test_twelve_recipes_hold_432_figures() -> None:
    assert {n for n in registry.recipe_names() if n.startswith("paper/study_")} == set(NAMES)
    figures = [figure for name in NAMES for figure in published_figures(name)]
    assert len(figures) == 432
    assert set(Counter(figure.at for figure in figures).values()) == {12}
    rows = {row.row for name in NAMES if (row := registry.find_paper_row(name))}
    assert rows == {f"Table 2, {network}, {s}" for network in BLOCKS for s in ENDS.values()}


@pytest.mark.parametrize(
    ("name", "at", "percent", "source"),
    [
        ("paper/study_scnn", "oxford-iiit, BL", 13.7, "pets"),
        ("paper/study_resnet50", "oxford-iiit, LW", 28.5, "pets"),
        ("paper/study_vgg16", "caltech101, FC", 69.1, "caltech101"),
        ("paper/study_mobilenet", "cassava, DSD", 63.6, None),
    ],
)
def test_figures_stand_as_printed(name: str, at: str, percent: float, source: str | None) -> None:
    figure = {figure.at: figure for figure in published_figures(name)}[at]
    assert figure.accuracy == pytest.approx(percent / 100)
    assert figure.overrides == ((f"source={source}",) if source else ())


@pytest.mark.parametrize("name", NAMES)
def test_the_protocol_is_the_papers(name: str) -> None:
    recipe = registry.load_recipe(name)
    assert (recipe.lr, recipe.momentum, recipe.weight_decay) == (0.003, 0.9, 1e-5)
    assert (recipe.batch_size, recipe.input_size, recipe.label_smoothing) == (256, 224, 0)
    assert (recipe.schedule, recipe.plateau_epochs, recipe.plateau_factor) == ("plateau", 20, 0.5)
    assert (recipe.plan.round_steps, recipe.validate_every) == (100_000, 1)
    assert lr_factor(recipe, TrainingClock(recipe.plan), steps=12) == 1, "no warm-up"


@pytest.mark.parametrize("network", BLOCKS)
def test_settings_and_rounds(network: str) -> None:
    plain, flipped, dropped = (registry.load_recipe(f"paper/study_{network}{end}") for end in ENDS)
    assert (plain.augmentation, plain.dropout) == ("none", 0)
    assert (flipped.augmentation, flipped.dropout) == ("resize_crop_flip", 0)
    assert (dropped.augmentation, dropped.dropout) == ("resize_crop_flip", 0.25)
    assert plain.architecture == network
    assert plain.plan.rounds == len(build_on_meta(plain)[1].blocks) == BLOCKS[network]


@pytest.mark.parametrize("method", ["welsr", "dsd", "wels", "fc", "lw"])
def test_every_method_of_the_study_runs_under_the_recipe(method: str) -> None:
    base = registry.load_recipe("paper/study_mobilenet")
    other = registry.compose_methods(base, method, {"source": "caltech101"})
    assert [m.name for m in other.methods] == [method]
    same = dict(base)
    assert {**dict(other), **{n: same[n] for n in ("name", "methods", "source")}} == same


def test_the_table_names_every_setting() -> None:
    assert {row.setting for row in reinit_study.load_table2()} == set(ENDS.values())
