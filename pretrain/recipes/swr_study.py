"""The soft-weight-rescaling paper's protocol and tables as data and as recipes.

"Soft Weight Rescaling", appendices D, E, Tables 1 to 5; official code
CILAB-RL-TEAM/soft-weight-rescaling. Adam at 1e-3, batches of 256, no augmentation,
no decay; generalization is 200 epochs, every stage of a scenario 100. With decay the rate falls to
a tenth at epochs 100 and 150. Warm-start and continual results are curves: rows without a figure.
A row is a recipe for every column: `paper/swr` for TinyImageNet, `paper/swr_mnist_mlp` and so on.
Figures 6 to 8 have the columns that Figures 2 to 4 lack.

The code's container (NVIDIA's PyTorch 23.09) computes in TF32 by default; the GPU is not named.

Differences: SWR's rows follow the printed bias rule, by which their figures were made
(`paper_literal`, see pretrain/methods/swr.py). MNIST's grey values are repeated in three channels.
"""

from collections.abc import Mapping
from itertools import zip_longest

from pretrain.recipes.plan import scenario_fields
from pretrain.recipes.recipe import PaperRecipe, PublishedFigure

PAPER = "SWR"

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
    "precision": "tf32",
    "opt_reset": "none",
    "validate_every": 1,
}
DECAY: Mapping[str, object] = {"schedule": "step", "milestones": (0.5, 0.75), "gamma": 0.1}

SETTINGS = ("stationary", "warm-start", "continual-full", "continual-limited")
"""Columns of LAMBDAS."""
NETWORKS: Mapping[str, str] = {
    "tinyimagenet swr_vgg16": "TinyImageNet VGG-16",
    "mnist mlp": "MNIST MLP",
    "cifar10 cnn": "CIFAR-10 CNN",
    "cifar100 cnn": "CIFAR-100 CNN",
    "cifar100 cnn_bn": "CIFAR-100 CNN-BN",
}
"""Source and architecture -> column of the tables; the first one is that of the recipes."""
VGG = "tinyimagenet swr_vgg16"
LAMBDAS: Mapping[str, Mapping[str, tuple[float | None, ...]]] = {
    "swr.lambda_f": {
        "mnist mlp": (1e-4, 1e-4, 1e-4, 1e-4),
        "cifar10 cnn": (1e-3, 1e-3, 1e-3, 1e-1),
        "cifar100 cnn": (1e-3, 1e-3, 1e-3, 1e-1),
        "cifar100 cnn_bn": (1e-4, 1e-4, 1e-4, 1e-1),
        VGG: (1e-2, 1e-2, 1e-2, 1e-4),
    },
    "swr.lambda_c": {
        "mnist mlp": (1e-4, 1e-4, 1e-4, 1e-4),
        "cifar10 cnn": (1e-3, 1e-3, 1e-3, 1e-1),
        "cifar100 cnn": (1e-3, 1e-3, 1e-3, 1e-1),
        "cifar100 cnn_bn": (1e-1, 1.0, 1e-1, 1e-2),
        VGG: (1e-1, 1e-1, 1e-2, 1.0),
    },
    "l2.lam": {
        "mnist mlp": (1e-5, 1e-5, 1e-4, 1e-5),
        **dict.fromkeys(("cifar10 cnn", "cifar100 cnn", "cifar100 cnn_bn"), (1e-2,) * 4),
        VGG: (1e-5, 1e-5, 1e-4, 1e-4),
    },
    "l2_init.lam": {
        "mnist mlp": (1e-5, 1e-5, 1e-4, 1e-5),
        **dict.fromkeys(("cifar10 cnn", "cifar100 cnn", "cifar100 cnn_bn"), (1e-2,) * 4),
        VGG: (1e-5, 1e-5, 1e-4, 1e-3),
    },
    "shrink_perturb.lam": {
        "mnist mlp": (None, 0.4, 0.6, 0.2),
        "cifar10 cnn": (None, 0.8, 0.8, 0.4),
        "cifar100 cnn": (None, 0.8, 0.8, 0.6),
        "cifar100 cnn_bn": (None, 0.8, 0.8, 0.4),
        VGG: (None, 0.8, 0.8, 0.4),
    },
}
"""The chosen coefficients: method.field -> data set and network -> one per setting."""
ACCURACIES: Mapping[str, tuple[float, ...]] = {
    "vanilla": (0.3912, 0.9789, 0.6500, 0.3283, 0.3234),
    "l2": (0.3915, 0.9795, 0.7119, 0.3882, 0.4222),
    "l2_init": (0.3870, 0.9793, 0.7041, 0.3881, 0.4030),
    "swr": (0.4348, 0.9822, 0.7158, 0.3914, 0.4129),
    "vanilla_decay": (0.4126, 0.9798, 0.6571, 0.3490, 0.3483),
    "l2_decay": (0.4080, 0.9811, 0.7304, 0.3949, 0.4532),
    "l2_init_decay": (0.4199, 0.9811, 0.7286, 0.4048, 0.4341),
    "swr_decay": (0.5221, 0.9796, 0.6925, 0.3599, 0.4240),
    "swr_reanchor": (0.5165, 0.9829, 0.7269, 0.4133, 0.4451),
}
"""Test accuracies of Tables 1 and 5 by row, in the order of NETWORKS."""


def chosen_coefficients(method: str, setting: str, network: str = VGG) -> dict[str, float]:
    """Return a method's coefficients in the paper, e.g. {"swr.lambda_f": .01}."""
    column, published = SETTINGS.index(setting), method.removesuffix("_reanchor")
    chosen = {n.partition("."): table[network][column] for n, table in LAMBDAS.items()}
    return {
        f"{method}.{field}": value
        for (owner, _, field), value in chosen.items()
        if owner == published and value is not None
    }


def build_study_rows(
    name: str, row: str, method: str, setting: str, fields: Mapping[str, object]
) -> tuple[PaperRecipe, ...]:
    """Build the recipes of a row in all columns, e.g. swr for TinyImageNet and swr_mnist_mlp."""
    literal = {f"{method}.paper_literal": True} if method.startswith("swr") else {}
    rows = []
    for network, accuracy in zip_longest(NETWORKS, ACCURACIES.get(name, ())):
        source, architecture = network.split()
        side = {"mnist": 28, "tinyimagenet": 64}.get(source, 32)
        column = {"source": source, "architecture": architecture, "input_size": side}
        coefficients = chosen_coefficients(method, setting, network)
        ending = "" if network == VGG else f"_{source}_{architecture}"
        label = row if network == VGG and not accuracy else f"{row}, {NETWORKS[network]}"
        rows.append(
            PaperRecipe(
                name=name + ending,
                paper=PAPER,
                row=label,
                overrides={**PROTOCOL, **fields, **column, **coefficients, **literal},
                figures=(PublishedFigure(accuracy=accuracy),) if accuracy else (),
            )
        )
    return tuple(rows)


def decay_rows(name: str, method: str) -> tuple[PaperRecipe, ...]:
    """Build the rows of a method with learning-rate decay (Table 5)."""
    return build_study_rows(name, "Table 5", method, "stationary", DECAY)


def scenario_rows(row: str, method: str) -> tuple[PaperRecipe, ...]:
    """Build a method's warm-start and continual rows (Figures 2 to 4): 100 epochs per stage."""
    settings = ((name, {**scenario_fields(name), "plan.epochs": 100}) for name in SETTINGS[1:])
    return tuple(
        recipe
        for setting, fields in settings
        for recipe in build_study_rows(
            f"{row}_{setting.replace('-', '_')}",
            f"Figures 2 to 4, {setting}",
            method,
            setting,
            fields,
        )
    )


def paper_rows(method: str, row: str = "") -> tuple[PaperRecipe, ...]:
    """Build all rows of a method that acts at every step, or of plain training as `row`."""
    row = row or method
    stationary = build_study_rows(row, "Table 1", method, "stationary", {})
    return *stationary, *decay_rows(f"{row}_decay", method), *scenario_rows(row, method)
