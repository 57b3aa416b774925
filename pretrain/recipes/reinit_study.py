"""The reinitialization study's small-data table as recipes: network x setting, for any data set.

"The Impact of Reinitialization on Generalization in Convolutional Neural Networks", section 3.1,
appendix C and Table 2. `paper/study_NETWORK[_augmented[_dropout]]` is the baseline BL with the
number of rounds that all methods get: K, the blocks of the network. The other methods are the same
recipe with `--method welsr|dsd|wels|fc|lw`, on `--source pets`, `caltech101`, `dogs120` or
`folder:DIR`. Every recipe lists the table's test accuracies of all data sets and methods (432 in
reinit_table2.json).

| setting     | paper                                | here                                     |
|-------------|--------------------------------------|------------------------------------------|
| round       | at most 100k steps                   | the same; it ends after 5 epochs at 100 % |
| rate        | halved after 20 epochs without a better validation error | the same         |
| augmentation | flip, resize to 248, crop of 224    | the same                                 |
| stopping    | early, by a validation part of 10 %  | the last weights; validation in the log  |
| accuracy    | on the test images                   | the same, scored once: `test_accuracy`   |
| precision   | TensorFlow on TPUs; not stated       | float32 (bf16 rounds activations, too) |

The paper does not state the early end for Table 2; a hundred thousand steps take days on one GPU,
and after convergence the gradient is close to zero. `--set plan.stop_accuracy=null` disables it.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from pretrain.recipes.recipe import PaperRecipe, PublishedFigure

TABLE = "reinit_table2.json"


class Table2Row(NamedTuple):
    """Accuracies (%) and standard errors by method: one setting, data set and network."""

    setting: str
    dataset: str
    network: str
    accuracy: dict[str, float]
    error: dict[str, float]
    train_images: int
    classes: int


@cache
def load_table2() -> tuple[Table2Row, ...]:
    """Return the 72 rows in the order of the paper."""
    data = json.loads((files(__package__) / TABLE).read_text(encoding="utf8"))
    rows = []
    for setting, dataset, network, values in data["rows"]:
        accuracy, error = (
            dict(zip(data["methods"], column, strict=True)) for column in zip(*values, strict=True)
        )
        sizes = data["datasets"][dataset]
        rows.append(Table2Row(setting, dataset, network, accuracy, error, **sizes))
    return tuple(rows)


def table2_methods() -> tuple[str, ...]:
    """Return the names of the methods: BL, WELSR, DSD, WELS, FC, LW."""
    return tuple(load_table2()[0].accuracy)


def table2_networks() -> tuple[str, ...]:
    """Return the four networks in the order of the paper."""
    return tuple(dict.fromkeys(row.network for row in load_table2()))


ROUNDS: Mapping[str, int] = {"scnn": 4, "vgg16": 13, "mobilenet": 7, "resnet50": 16}
"""Network -> K (appendix C)."""

AUGMENTED: Mapping[str, object] = {"augmentation": "resize_crop_flip"}
SETTINGS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "plain": ("", {"augmentation": "none"}),
    "augmentation": ("_augmented", AUGMENTED),
    "augmentation+dropout": ("_augmented_dropout", {**AUGMENTED, "dropout": 0.25}),
}
"""Setting of the table -> end of the recipe's name, and what it sets."""

SOURCES: Mapping[str, str] = {
    "oxford-iiit": "pets",
    "caltech101": "caltech101",
    "dogs": "dogs120",
}
"""Data set of the table -> source; the other ones come as folder:DIR with train/, val/, test/."""

PROTOCOL: Mapping[str, object] = {
    "source": "pets",
    "input_size": 224,
    "plan.epochs": 1,
    "plan.round_steps": 100_000,
    "plan.stop_accuracy": 1.0,
    "plan.stop_patience": 5,
    "batch_size": 256,
    "lr": 0.003,
    "momentum": 0.9,
    "weight_decay": 1e-5,
    "schedule": "plateau",
    "plateau_epochs": 20,
    "plateau_factor": 0.5,
    "warmup": 0.0,
    "label_smoothing": 0.0,
    "precision": "fp32",
    "validate_every": 1,
}


def study_figures(network: str, setting: str) -> Iterator[PublishedFigure]:
    """Yield the table's accuracies for a recipe: six data sets, six methods."""
    for row in load_table2():
        if (row.network, row.setting) == (network, setting):
            source = SOURCES.get(row.dataset)
            overrides = (f"source={source}",) if source else ()
            for method, percent in row.accuracy.items():
                at = f"{row.dataset}, {method}"
                yield PublishedFigure(accuracy=percent / 100, at=at, overrides=overrides)


def study_rows() -> tuple[PaperRecipe, ...]:
    """Return the twelve recipes."""
    return tuple(
        PaperRecipe(
            name=f"study_{network}{end}",
            paper="reinitialization study",
            row=f"Table 2, {network}, {setting}",
            overrides={**PROTOCOL, **values, "architecture": network, "plan.rounds": rounds},
            figures=tuple(study_figures(network, setting)),
        )
        for network, rounds in ROUNDS.items()
        for setting, (end, values) in SETTINGS.items()
    )
