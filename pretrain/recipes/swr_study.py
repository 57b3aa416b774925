"""The soft-weight-rescaling paper's protocol and tables as data: TinyImageNet rows as recipes.

"Soft Weight Rescaling", appendices D, E, Tables 1 to 5; official code
CILAB-RL-TEAM/soft-weight-rescaling. Adam at 1e-3, batches of 256, no augmentation,
no decay; generalization is 200 epochs, every stage of a scenario 100. With decay the rate falls to
a tenth at epochs 100 and 150. Warm-start and continual results are curves: rows without a figure.
"""

from collections.abc import Mapping

from pretrain.recipes.plan import scenario_fields
from pretrain.recipes.recipe import PaperRecipe, PublishedFigure

PAPER, COLUMN = "SWR", "TinyImageNet VGG-16"

PROTOCOL: Mapping[str, object] = {
    "architecture": "swr_vgg16",
    "plan.rounds": 1,
    "plan.epochs": 200,
    "batch_size": 256,
    "optimizer": "adam",
    "lr": 1e-3,
    "weight_decay": 0.0,
    "schedule": "constant",
    "warmup": 0.0,
    "label_smoothing": 0.0,
    "augmentation": "none",
    "opt_reset": "none",
    "validate_every": 1,
}
DECAY: Mapping[str, object] = {"schedule": "step", "milestones": (0.5, 0.75), "gamma": 0.1}

SETTINGS = ("stationary", "warm-start", "continual-full", "continual-limited")
"""Columns of LAMBDAS."""
LAMBDAS: Mapping[str, Mapping[str, tuple[float | None, ...]]] = {
    "swr.lambda_f": {
        "mnist mlp": (1e-4, 1e-4, 1e-4, 1e-4),
        "tinyimagenet swr_vgg16": (1e-2, 1e-2, 1e-2, 1e-4),
    },
    "swr.lambda_c": {
        "mnist mlp": (1e-4, 1e-4, 1e-4, 1e-4),
        "tinyimagenet swr_vgg16": (1e-1, 1e-1, 1e-2, 1.0),
    },
    "l2.lam": {
        "mnist mlp": (1e-5, 1e-5, 1e-4, 1e-5),
        "tinyimagenet swr_vgg16": (1e-5, 1e-5, 1e-4, 1e-4),
    },
    "l2_init.lam": {
        "mnist mlp": (1e-5, 1e-5, 1e-4, 1e-5),
        "tinyimagenet swr_vgg16": (1e-5, 1e-5, 1e-4, 1e-3),
    },
    "shrink_perturb.lam": {
        "mnist mlp": (None, 0.4, 0.6, 0.2),
        "tinyimagenet swr_vgg16": (None, 0.8, 0.8, 0.4),
    },
}
"""The chosen coefficients: method.field -> data set and network -> one per setting."""


def chosen_coefficients(
    method: str, setting: str, network: str = "tinyimagenet swr_vgg16"
) -> dict[str, float]:
    """Return a method's coefficients in the paper, e.g. {"swr.lambda_f": .01}."""
    column = SETTINGS.index(setting)
    chosen = {n: table[network][column] for n, table in LAMBDAS.items()}
    return {n: v for n, v in chosen.items() if n.split(".")[0] == method and v is not None}


def decay_row(name: str, lambdas: Mapping[str, float], accuracy: float) -> PaperRecipe:
    """Return the row with learning-rate decay (Table 5)."""
    return table_row(name, "Table 5", {**PROTOCOL, **DECAY, **lambdas}, accuracy)


def table_row(
    name: str, table: str, overrides: Mapping[str, object], accuracy: float
) -> PaperRecipe:
    """Return a row of a table, in its column TinyImageNet."""
    row, figures = f"{table}, {COLUMN}", (PublishedFigure(accuracy=accuracy),)
    return PaperRecipe(name=name, paper=PAPER, row=row, overrides=overrides, figures=figures)


def scenario_rows(row: str, method: str) -> tuple[PaperRecipe, ...]:
    """Return a method's warm-start and continual rows (Figures 2 to 4): 100 epochs per stage."""
    return tuple(
        PaperRecipe(
            name=f"{row}_{setting.replace('-', '_')}",
            paper=PAPER,
            row=f"Figures 2 to 4, {setting}",
            overrides={
                **PROTOCOL,
                **scenario_fields(setting),
                "plan.epochs": 100,
                **chosen_coefficients(method, setting),
            },
        )
        for setting in SETTINGS[1:]
    )


def paper_rows(method: str, table1: float, table5: float, row: str = "") -> tuple[PaperRecipe, ...]:
    """Return all rows of a method that acts at every step, or of plain training as `row`."""
    row = row or method
    lambdas = chosen_coefficients(method, "stationary")
    stationary = table_row(row, "Table 1", {**PROTOCOL, **lambdas}, table1)
    return stationary, decay_row(f"{row}_decay", lambdas, table5), *scenario_rows(row, method)
