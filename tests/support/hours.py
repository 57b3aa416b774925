"""Cost of the headline tables of the papers on one H100, for the table of pretrain/README.md."""

from collections.abc import Iterator

from fsbench.api.listing import Row
from fsbench.data import SOURCES
from pretrain.recipes.registry import load_recipe
from pretrain.training.cost import H100, project_training

IMAGENET = 1_281_167, 1000
"""Training images and classes."""
SWR = ("vanilla", "l2", "l2_init", "swr")
NIO = ("resnet110", "densenet100", "wrn28_10")
STUDY = "at most: 6 methods, 6 data sets, 3 settings; rounds end early"
RESNET50 = "architecture=timm/resnet50 input_size=224 plan.epochs=100 batch_size=256"
SWIN = "architecture=timm/swin_tiny_patch4_window7_224 input_size=224 plan.epochs=300"


def sum_hours(*names: str, settings: str = "", size: tuple[int, int] | None = None) -> float:
    """Return the hours of one run of each of these recipes of papers.

    settings: fields apart by spaces; size: images and classes, those of the source if None.
    """
    seconds = 0.0
    for name in names:
        recipe = load_recipe(f"paper/{name}").override(settings.split())
        facts = SOURCES.load(recipe.source).FACTS
        images, classes = size or (facts.n_images, len(facts.classes))
        seconds += project_training(recipe, images, classes, H100)
    return seconds / 3600


def iterate_tables() -> Iterator[tuple[str, str, str, float]]:
    """Yield paper, table, what is trained, and hours."""
    yield "SEAL", "Table 2", "4 methods", sum_hours("normal", "normal_long", "llf", "seal")
    hours = 3 * sum_hours("weight_compander", "weight_compander_control")
    yield "Weight Compander", "Table IV", "2 methods, 3 seeds", hours
    hours = 3 * sum_hours(*SWR, *(f"{name}_decay" for name in SWR), "swr_reanchor")
    yield "SWR", "Tables 1 and 5, TinyImageNet", "9 methods, 3 seeds", hours
    for network in ("scnn", "vgg16", "mobilenet", "resnet50"):
        hours = 6 * 6 * 3 * sum_hours(f"study_{network}")
        yield "Reinitialization", f"Table 2, {network}", STUDY, hours
    columns = [f"nio_{source}_{n}" for source in ("cifar10", "cifar100") for n in NIO]
    hours = 2 * sum_hours(*columns, *(f"{column}_no_norm" for column in columns))
    yield "NIO", "appendix B.2", "12 networks, 2 methods", hours
    for name, settings in (("ResNet-50", RESNET50), ("Swin-T", f"{SWIN} batch_size=1024")):
        hours = 2 * sum_hours("nio_cifar10_resnet110", settings=settings, size=IMAGENET)
        yield "NIO", f"appendix B.3, {name}", "2 methods", hours


def list_hours() -> list[Row]:
    """Return the rows of the table; hours have two digits."""
    columns = ("paper", "table", "runs")
    rows = [(texts, int(float(f"{hours:.2g}"))) for *texts, hours in iterate_tables()]
    return [dict(zip(columns, t, strict=True)) | {"H100 hours": h} for t, h in rows]
