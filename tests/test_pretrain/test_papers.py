"""Every number of the papers on TinyImageNet has a recipe, and `fsbench ls recipes` shows it."""

import json

import pytest
from support.pretrain import drop_epochs, published_figures
from typer.testing import CliRunner

from fsbench.api import listing
from fsbench.cli.main import build
from pretrain.recipes import registry

PRINTED = {
    # paper, table: recipe -> percent, in the order of the table
    ("SEAL", "Table 2"): {
        "normal": {"generation 1": 54.37},
        "normal_long": {"generation 3": 51.16, "generation 10": 49.27},
        "llf": {"generation 3": 56.12, "generation 10": 56.92},
        "seal": {"generation 3": 58.25, "generation 10": 59.22},
    },
    ("SEAL", "Table 7"): {
        "seal_freeze": {"generation 3": 52.45, "generation 10": 51.17},
        "seal_reinit": {"generation 3": 56.82, "generation 10": 58.87},
        "seal_reverse": {"generation 3": 50.25, "generation 10": 41.05},
    },
    ("SWR", "Table 1, TinyImageNet VGG-16"): {
        "vanilla": {"": 39.12},
        "l2": {"": 39.15},
        "l2_init": {"": 38.70},
        "swr": {"": 43.48},
    },
    ("SWR", "Table 5, TinyImageNet VGG-16"): {
        "vanilla_decay": {"": 41.26},
        "l2_decay": {"": 40.80},
        "l2_init_decay": {"": 41.99},
        "swr_decay": {"": 52.21},
        "swr_reanchor": {"": 51.65},
    },
    ("Weight Compander", "Table IV, ResNet-50"): {
        "weight_compander_control": {"": 65.08},
        "weight_compander": {"": 65.93},
    },
}
SMALL_SOURCES = {
    # endings of recipes: recipe -> percent, in the order of the endings
    ("mnist_mlp", "cifar10_cnn", "cifar100_cnn", "cifar100_cnn_bn"): {
        "vanilla": (97.89, 65.00, 32.83, 32.34),
        "l2": (97.95, 71.19, 38.82, 42.22),
        "l2_init": (97.93, 70.41, 38.81, 40.30),
        "swr": (98.22, 71.58, 39.14, 41.29),
        "vanilla_decay": (97.98, 65.71, 34.90, 34.83),
        "l2_decay": (98.11, 73.04, 39.49, 45.32),
        "l2_init_decay": (98.11, 72.86, 40.48, 43.41),
        "swr_decay": (97.96, 69.25, 35.99, 42.40),
        "swr_reanchor": (98.29, 72.69, 41.33, 44.51),
    },
    (
        *("cifar10_resnet18", "cifar10_resnet34", "cifar10_resnet50"),
        *("cifar100_resnet18", "cifar100_resnet34", "cifar100_resnet50"),
    ): {
        "weight_compander_control": (94.04, 93.69, 93.31, 76.47, 77.07, 76.17),
        "powerprop": (92.94, 93.29, 93.47, 74.70, 74.70, 75.23),
        "weight_norm": (94.26, 94.17, 93.89, 76.83, 76.98, 76.10),
        "weight_compander": (94.44, 94.43, 94.06, 76.73, 77.54, 77.73),
        "weight_compander_arsinh": (94.34, 94.68, 93.82, 76.59, 77.21, 76.76),
        "weight_compander_erf": (94.36, 94.52, 93.87, 76.80, 77.26, 77.51),
        "weight_compander_fine": (94.16, 94.46, 94.80),
    },
}
"""Columns of the tables on MNIST and CIFAR."""
CURVES = ("vanilla", "l2", "l2_init", "swr", "shrink_perturb", "head_reset", "full_reset")
"""The soft-weight-rescaling paper draws these in its warm-start and continual figures."""


@pytest.mark.parametrize("table", PRINTED, ids=" ".join)
def test_the_table_stands_as_printed(table: tuple[str, str]) -> None:
    rows = [row for row in listing.recipes() if (row["paper"], row["row"]) == table]
    figures = {
        row["recipe"]: {f["at"]: round(100 * f["accuracy"], 2) for f in row["figures"]}
        for row in rows
    }
    assert figures == {f"paper/{name}": values for name, values in PRINTED[table].items()}


def test_no_other_recipe_claims_a_number_on_tinyimagenet() -> None:
    allowed = {f"paper/{name}" for table in PRINTED.values() for name in table}
    names = [n for n in registry.recipe_names() if registry.load_recipe(n).source == "tinyimagenet"]
    assert {n for n in names if published_figures(n)} == allowed


@pytest.mark.parametrize("endings", SMALL_SOURCES)
def test_the_columns_on_mnist_and_cifar_stand_as_printed(endings: tuple[str, ...]) -> None:
    for row, percent in SMALL_SOURCES[endings].items():
        names = [f"paper/{row}_{ending}" for ending in endings[: len(percent)]]
        figures = [figure for name in names for figure in published_figures(name)]
        assert [round(100 * figure.accuracy, 2) for figure in figures] == list(percent)
        for name in names:
            recipe = registry.load_recipe(name)
            assert recipe.source == name.rpartition(row + "_")[2].split("_")[0]
            assert recipe.input_size == (28 if recipe.source == "mnist" else 32)


def test_no_other_recipe_claims_a_number_on_mnist_or_cifar() -> None:
    expected = {
        f"paper/{row}_{ending}"
        for endings, rows in SMALL_SOURCES.items()
        for row, percent in rows.items()
        for ending in endings[: len(percent)]
    }
    sources = {n: registry.load_recipe(n).source for n in registry.recipe_names()}
    small = [n for n, source in sources.items() if source in ("mnist", "cifar10", "cifar100")]
    assert {n for n in small if published_figures(n)} == expected
    assert len(small) - len(expected) == 7 * 3 * 4 + 2, "curves on four columns, NIO's figures"


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


def test_the_listing_shows_paper_row_and_figure() -> None:
    shown = CliRunner().invoke(build(), ["ls", "recipes"]).output
    (seal,) = [line for line in shown.splitlines() if line.startswith("paper/seal ")]
    assert "SEAL" in seal
    assert "Table 2" in seal
    assert "58.25 (generation 3), 59.22 (generation 10)" in seal
    (family,) = [line for line in shown.splitlines() if line.startswith("paper/study_scnn ")]
    assert "36 figures" in family
    assert "4 x 100000 steps" in family


def test_json_holds_every_figure() -> None:
    recipes = json.loads(CliRunner().invoke(build(), ["ls", "recipes", "--json"]).stdout)
    rows = {row["recipe"]: row for row in recipes}
    assert rows["paper/seal"]["figures"][0] == {
        "accuracy": 0.5825,
        "at": "generation 3",
        "overrides": ["plan.rounds=3"],
    }
    study = [row for row in recipes if row["paper"] == "reinitialization study"]
    assert (len(study), sum(len(row["figures"]) for row in study)) == (12, 432)
    assert rows["toy/seal"]["paper"] is None


def test_redraws_of_the_papers_rows_follow_the_code_that_made_their_figures() -> None:
    redraws = {n: registry.load_recipe(n).redraw for n in registry.recipe_names()}
    coded = {name for name, law in redraws.items() if law == "kaiming_uniform_sqrt5"}
    assert coded == {"paper/llf", "paper/seal_reinit"}


def test_weight_companders_rows_follow_its_pipeline() -> None:
    for name in ("weight_compander", "weight_compander_control"):
        recipe = registry.load_recipe(f"paper/{name}")
        assert (recipe.source_size, recipe.input_size) == (256, 224)
        assert (recipe.architecture, recipe.augmentation) == ("wc_resnet50", "crop_flip")
        assert (recipe.batch_size, recipe.lr, recipe.weight_decay) == (128, 0.1, 1e-4)
        assert drop_epochs(recipe) == (75, 150, 225)
