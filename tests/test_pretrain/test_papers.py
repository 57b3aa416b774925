"""Every number of the papers has a recipe with the printed protocol, which the listing shows."""

import json
from collections import defaultdict

import pytest
from support.cases import GOLDEN, read_cases
from support.pretrain import drop_epochs, published_figures
from typer.testing import CliRunner

from fsbench.cli.main import build
from pretrain.recipes import registry, reinit_study
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.schedules import lr_factor
from pretrain.weights.surgery import build_on_meta

CURVES = ("vanilla", "l2", "l2_init", "swr", "shrink_perturb", "head_reset", "full_reset")
"""The soft-weight-rescaling paper draws these in its warm-start and continual figures."""


def test_figures_are_those_that_were_read_from_the_papers() -> None:
    """Percent by row of a paper and recipe; those of the study's Table 2 are tested below."""
    figures: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for name in set(registry.recipe_names()) - set(NAMES):
        row = registry.find_paper_row(name)
        if row and row.figures:
            percents = {figure.at: round(100 * figure.accuracy, 2) for figure in row.figures}
            figures[f"{row.paper}: {row.row}"][name] = percents
    assert figures == json.loads((GOLDEN / "published_figures.json").read_text("utf8"))


def test_three_generations_are_the_long_recipe_cut() -> None:
    for name in ("normal_long", "llf", "seal", "seal_freeze", "seal_reinit", "seal_reverse"):
        rounds = [
            registry.load_recipe(f"paper/{name}").override(figure.overrides).plan.rounds
            for figure in published_figures(f"paper/{name}")
        ]
        assert rounds == [3, 10]
    assert registry.load_recipe("paper/normal").plan.rounds == 1


@pytest.mark.parametrize("setting", ["warm_start", "continual_full", "continual_limited"])
def test_every_curve_has_a_recipe(setting: str) -> None:
    for name in CURVES:
        row = registry.find_paper_row(f"paper/{name}_{setting}")
        assert row
        assert row.row == f"Figures 2 to 4, {setting.replace('_', '-')}"


def test_the_listing_shows_paper_row_and_figures() -> None:
    shown = CliRunner().invoke(build(), ["ls", "recipes"]).output
    (seal,) = [line for line in shown.splitlines() if line.startswith("paper/seal ")]
    for text in ("SEAL", "Table 2", "58.25 (generation 3), 59.22 (generation 10)"):
        assert text in seal
    (family,) = [line for line in shown.splitlines() if line.startswith("paper/study_scnn ")]
    assert "36 figures" in family
    assert "4 x 100000 steps" in family


ROWS = read_cases("paper_rows")


@pytest.mark.parametrize("name", ROWS)
def test_protocols_and_coefficients_are_the_papers(name: str) -> None:
    recipe = registry.load_recipe(name)
    plan = {"epochs": recipe.plan.epochs, "stages": len(recipe.plan.stages)}
    actual = {**dict(recipe), **plan, **dict(recipe.methods[0]), "drops": [*drop_epochs(recipe)]}
    assert {field: actual[field] for field in ROWS[name]} == ROWS[name]


BLOCKS = {"scnn": 4, "vgg16": 13, "mobilenet": 7, "resnet50": 16}
ENDS = {"": "plain", "_augmented": "augmentation", "_augmented_dropout": "augmentation+dropout"}
NAMES = {
    f"paper/study_{network}{end}": (network, setting)
    for network in BLOCKS
    for end, setting in ENDS.items()
}


def test_twelve_recipes_have_the_432_figures_as_printed() -> None:
    assert {n for n in registry.recipe_names() if n.startswith("paper/study_")} == set(NAMES)
    figures = {
        (*setting, figure.at): figure
        for name, setting in NAMES.items()
        for figure in published_figures(name)
    }
    assert len(figures) == 432
    assert {row.setting for row in reinit_study.load_table2()} == set(ENDS.values())
    for network, at, percent, source in (
        ("scnn", "oxford-iiit, BL", 13.7, "pets"),
        ("resnet50", "oxford-iiit, LW", 28.5, "pets"),
        ("vgg16", "caltech101, FC", 69.1, "caltech101"),
        ("scnn", "dogs, BL", 5.8, "dogs120"),
        ("mobilenet", "cassava, DSD", 63.6, None),
    ):
        figure = figures[network, "plain", at]
        assert figure.accuracy == pytest.approx(percent / 100)
        assert figure.overrides == ((f"source={source}",) if source else ())


@pytest.mark.parametrize("name", NAMES)
def test_the_protocol_of_the_study(name: str) -> None:
    network, setting = NAMES[name]
    recipe, row = registry.load_recipe(name), registry.find_paper_row(name)
    assert row
    assert row.row == f"Table 2, {network}, {setting}"
    assert (recipe.lr, recipe.momentum, recipe.weight_decay) == (0.003, 0.9, 1e-5)
    assert (recipe.batch_size, recipe.input_size, recipe.label_smoothing) == (256, 224, 0)
    assert (recipe.schedule, recipe.plateau_epochs, recipe.plateau_factor) == ("plateau", 20, 0.5)
    assert (recipe.plan.round_steps, recipe.validate_every) == (100_000, 1)
    assert lr_factor(recipe, TrainingClock(recipe.plan), steps=12) == 1, "no warm-up"
    assert recipe.augmentation == ("none" if setting == "plain" else "resize_crop_flip")
    assert recipe.dropout == 0.25 * setting.endswith("dropout")
    assert recipe.architecture == network
    assert recipe.plan.rounds == len(build_on_meta(recipe)[1].blocks) == BLOCKS[network]
