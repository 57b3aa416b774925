"""Cost of the headline tables of the papers on one H100, for the table of pretrain/README.md."""

from typing import NamedTuple

from fsbench.api.listing import Row
from fsbench.data import SOURCES
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.registry import load_recipe
from pretrain.training.cost import H100, project_training

IMAGENET = 1_281_167, 1000
"""Training images and classes."""


class Headline(NamedTuple):
    """A table of a paper. recipes: trained `each` times, with the fields of `settings`."""

    paper: str
    table: str
    runs: str
    recipes: tuple[str, ...]
    each: int
    settings: tuple[str, ...] = ()
    size: tuple[int, int] | None = None


RESNET50 = ("architecture=timm/resnet50", "input_size=224", "plan.rounds=1", "plan.epochs=100")
SWIN = ("architecture=timm/swin_tiny_patch4_window7_224", "input_size=224", "plan.rounds=1")
NETWORKS = ("scnn", "vgg16", "mobilenet", "resnet50")
CIFAR = tuple(
    f"nio_{source}_{network}{end}"
    for source in ("cifar10", "cifar100")
    for network in ("resnet110", "densenet100", "wrn28_10")
    for end in ("", "_no_norm")
)
SWR = ("vanilla", "l2", "l2_init", "swr")
HEADLINES = (
    Headline("SEAL", "Table 2", "4 methods", ("normal", "normal_long", "llf", "seal"), 1),
    Headline(
        *("Weight Compander", "Table IV", "2 methods, 3 seeds"),
        ("weight_compander", "weight_compander_control"),
        each=3,
    ),
    Headline(
        *("SWR", "Tables 1 and 5, TinyImageNet", "9 methods, 3 seeds"),
        (*SWR, *(f"{name}_decay" for name in SWR), "swr_reanchor"),
        each=3,
    ),
    *(
        Headline(
            *("Reinitialization", f"Table 2, {network}"),
            "at most: 6 methods, 6 data sets, 3 settings; rounds end early",
            (f"study_{network}",),
            each=6 * 6 * 3,
        )
        for network in NETWORKS
    ),
    Headline("NIO", "appendix B.2", "12 networks, 2 methods", CIFAR, 2),
    Headline(
        *("NIO", "appendix B.3, ResNet-50", "2 methods", ("nio_cifar10_resnet110",), 2),
        (*RESNET50, "batch_size=256"),
        IMAGENET,
    ),
    Headline(
        *("NIO", "appendix B.3, Swin-T", "2 methods", ("nio_cifar10_resnet110",), 2),
        (*SWIN, "plan.epochs=300", "batch_size=1024"),
        IMAGENET,
    ),
)


def project_hours(recipe: Recipe, size: tuple[int, int] | None) -> float:
    """Return the hours of a run; size: training images and classes, those of the source if None."""
    if size is None:
        facts = SOURCES.load(recipe.source).FACTS
        size = facts.n_images, len(facts.classes)
    return project_training(recipe, *size, H100) / 3600


def list_hours() -> list[Row]:
    """Return the rows of the table."""
    rows: list[Row] = []
    for headline in HEADLINES:
        recipes = [load_recipe(f"paper/{n}").override(headline.settings) for n in headline.recipes]
        hours = headline.each * sum(project_hours(recipe, headline.size) for recipe in recipes)
        rows.append(
            {
                "paper": headline.paper,
                "table": headline.table,
                "runs": headline.runs,
                "H100 hours": int(float(f"{hours:.2g}")),
            }
        )
    return rows
