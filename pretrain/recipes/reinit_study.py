"""The reinitialization study's small-data table as recipes: network x setting, any data set.

"The Impact of Reinitialization on Generalization in Convolutional Neural Networks", section 3.1,
appendix C and Table 2 (methods.md A, I). `paper/study_NETWORK[_augmented[_dropout]]` is the
baseline BL under the rounds that all methods get: K blocks of the network. The others are the same
recipe with `--method welsr|dsd|wels|fc|lw`, on `--source pets`, `caltech101` or `folder:DIR`; every
recipe has the table's figures of all data sets and methods, test accuracies.

| setting     | paper                                | here                                     |
|-------------|--------------------------------------|------------------------------------------|
| round       | at most 100k steps                   | the same; it ends after 5 epochs at 100 % |
| rate        | halved after 20 epochs without a better validation error | the same         |
| augmentation | flip, resize to 248, crop of 224    | the same                                 |
| stopping    | early, by a validation part of 10 %  | the last weights; validation in the log  |

The early end is not the paper's word for Table 2; a hundred thousand steps cost days on one GPU,
and after convergence the gradient is close to none. `--set plan.stop_accuracy=null` goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pretrain.method import Figure, PaperRecipe
from pretrain.recipes.reinit_table2 import Row, table2

ROUNDS: Mapping[str, int] = {"scnn": 4, "vgg16": 13, "mobilenet": 7, "resnet50": 16}
"""Network -> K (appendix C)."""

AUGMENTED: Mapping[str, object] = {"augmentation": "resize_crop_flip"}
SETTINGS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "plain": ("", {"augmentation": "none"}),
    "augmentation": ("_augmented", AUGMENTED),
    "augmentation+dropout": ("_augmented_dropout", {**AUGMENTED, "dropout": 0.25}),
}
"""Setting of the table -> end of the recipe's name, and what it sets."""

SOURCES: Mapping[str, str] = {"oxford-iiit": "pets", "caltech101": "caltech101"}
"""Data set of the table -> source; the other ones come as folder:DIR."""

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
    "validate_every": 1,
}


def figures(network: str, setting: str) -> Iterator[Figure]:
    """The table's numbers for a recipe: six data sets, six methods."""
    for row in table2():
        if (row.network, row.setting) == (network, setting):
            for method, percent in row.accuracy.items():
                yield figure(row, method, percent)


def figure(row: Row, method: str, percent: float) -> Figure:
    source = SOURCES.get(row.dataset)
    return Figure(
        accuracy=percent / 100,
        at=f"{row.dataset}, {method}",
        overrides=(f"source={source}",) if source else (),
    )


def rows() -> tuple[PaperRecipe, ...]:
    """The twelve recipes."""
    return tuple(
        PaperRecipe(
            name=f"study_{network}{end}",
            paper="reinitialization study",
            row=f"Table 2, {network}, {setting}",
            overrides={**PROTOCOL, **values, "architecture": network, "plan.rounds": rounds},
            figures=tuple(figures(network, setting)),
        )
        for network, rounds in ROUNDS.items()
        for setting, (end, values) in SETTINGS.items()
    )
