"""Short training runs that the claims share: two small sources, recipes and one training.

The digits of scikit-learn, 1,797 grey images of ten classes (Alpaydin and Kaynak, Optical
Recognition of Handwritten Digits, UCI 1998, CC BY 4.0), need no download. Networks reach 96 to 98 %
on them, which leaves no room for a gain; `swr_bounds` gives a part of the training images a wrong
label, which makes over-fitting visible. Of ten classes of TinyImageNet, where they are on disk, few
images are learned by heart, and accuracies on others stay far below 100 %.

Soft weight rescaling is trained as in appendix D of https://arxiv.org/abs/2507.04683: Adam at 1e-3,
no augmentation, no decay, optimizer state kept between stages. Batches have 32 images, not the
paper's 256, so that 1,437 images and a few seconds still give some thousand steps. A coefficient of
SWR acts once per step; each claim states how its own was chosen.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from torch import Tensor

from fsbench.claims.engine import ClaimJob
from fsbench.core import seeding
from fsbench.core.io import cache_folder
from fsbench.data.base import hash_lines
from fsbench.data.catalog import DataRoots
from fsbench.data.image_folder import make_custom_facts
from fsbench.data.loading import list_source
from fsbench.data.source import SourceDataset, Split, decode_source
from pretrain.recipes.plan import scenario_fields
from pretrain.recipes.recipe import Recipe
from pretrain.training.context import Context
from pretrain.training.loop import train_recipe
from pretrain.weights.surgery import get_weight

SIDE, COLOUR_SIDE, CLASSES = 8, 16, 10
IMAGES, VALIDATION, COLOUR_VALIDATION = 1797, 360, 1000
"""Digits; digits and colour images for validation, the others are for training."""
NOISE = 0.4
"""Part of the training digits that get a wrong label in `swr_bounds`."""
BATCH, LR = 32, 1e-3
PLAIN = {
    "weight_decay": 0.0,
    "schedule": "constant",
    "warmup": 0.0,
    "label_smoothing": 0.0,
    "channels_last": False,
}
"""Fields of training without decay, schedule and smoothing, in which some papers compare."""


def load_digits_source(
    seed: int = 0, train: int = IMAGES - VALIDATION, zoom: int = 1, noise: float = 0.0
) -> SourceDataset:
    """Load `train` (at most 1,437) digits and 360 for validation, in an order set by the seed.

    zoom: enlarge every pixel to zoom x zoom, for networks that need larger images; noise: part of
    the training images that get a wrong label, drawn evenly from the other nine.
    """
    digits = load_digits()
    grey = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    images = np.repeat(grey[:, None], 3, axis=1).repeat(zoom, axis=2).repeat(zoom, axis=3)
    labels = digits.target.astype(np.int64)
    order = seeding.permutations(1, IMAGES, "digits", seed)[0]
    val, used = order[:VALIDATION], order[VALIDATION : VALIDATION + train]
    drawn = seeding.uniforms((len(used), 2), "label noise", seed)
    other = (labels[used] + 1 + (drawn[:, 1] * (CLASSES - 1)).astype(np.int64)) % CLASSES
    taught = Split(images[used], np.where(drawn[:, 0] < noise, other, labels[used]))
    scale = float(images[used].mean() / 255), float(images[used].std() / 255)
    key = f"digits-{seed}-{train}-zoom{zoom}-noise{noise:g}"
    tested = Split(images[val], labels[val])
    return make_source(key, taught, tested, "0123456789", scale)


def make_source(
    key: str, train: Split, val: Split, classes: Sequence[str], scale: tuple[float, float]
) -> SourceDataset:
    """Return a source made in memory; key: its NAME-SETTINGS and fingerprint; scale: mean, std."""
    name = key.partition("-")[0]
    facts = make_custom_facts(name, classes, train.labels.tolist(), "made in memory")
    mean, std = ((value, value, value) for value in scale)
    return SourceDataset(key, facts, train, val, key, mean=mean, std=std)


def load_colour_source(job: ClaimJob, images: int) -> SourceDataset:
    """Load colour images of 16 x 16 px: `images` for training, 1,000 for validation.

    The seed and the number of images that are there set their order. Raises as `decode_colours`.
    """
    source = decode_colours(job.settings.data)
    order = seeding.permutations(1, len(source.train), "colour", job.seed)[0]
    used, others = order[:images], order[images : images + COLOUR_VALIDATION]
    return replace(
        source,
        train=source.train.take(used),
        val=source.train.take(others),
        fingerprint=hash_lines([source.fingerprint, str(job.seed), str(images)]),
    )


@cache
def decode_colours(roots: DataRoots) -> SourceDataset:
    """Decode the ten TinyImageNet classes with the smallest hash of their name, once a process.

    Raises DataError without TinyImageNet.
    """
    listing = list_source("tinyimagenet", roots, cache_folder(None))
    names = listing.facts.classes
    labels = {image.label for image in listing.parts["train"]}
    ranked = sorted(labels, key=lambda label: seeding.seed_for("claims", names[label]))
    position = {label: i for i, label in enumerate(ranked[:CLASSES])}
    parts = {
        name: [i._replace(label=position[i.label]) for i in part if i.label in position]
        for name, part in listing.parts.items()
    }
    classes = tuple(names[label] for label in position)
    counts = listing.facts.images_per_class[:CLASSES]
    facts = listing.facts.model_copy(update={"classes": classes, "images_per_class": counts})
    chosen = replace(listing, facts=facts, parts=parts)
    return decode_source(chosen, cache_folder(None), COLOUR_SIDE)


def build_claim_recipe(
    methods: Sequence[Mapping[str, Any]], plan: Mapping[str, object], seed: int, **fields: object
) -> Recipe:
    """Build a recipe without augmentation, on digits unless `fields` name another source."""
    name = f"paper/{'+'.join(method['name'] for method in methods)}"
    data = {"source": "digits", "input_size": SIDE, "augmentation": "none", "seed": seed}
    values = {"name": name, "plan": plan, "methods": methods}
    return Recipe.model_validate(values | data | fields)


def build_swr_recipe(
    method: Mapping[str, object],
    source: SourceDataset,
    seed: int,
    epochs: int,
    scenario: str = "stationary",
    **fields: object,
) -> Recipe:
    """Build the paper's recipe for its MLP; method: its name and settings."""
    images = {"source": source.facts.name, "input_size": source.train.images.shape[-1]}
    training = {"architecture": "mlp", "batch_size": BATCH, "optimizer": "adam", "lr": LR}
    fields = scenario_fields(scenario) | fields
    plan = {"stages": fields.pop("plan.stages"), "epochs": epochs}
    return build_claim_recipe([method], plan, seed, **PLAIN | images | training | fields)


class TrainedRun(NamedTuple):
    """A finished run, accuracies in %.

    test: of every validated epoch; stages: test accuracy after every stage; train: of every epoch,
    over its batches, each before its step; watched: what was measured after setup and after every
    epoch.
    """

    test: Sequence[float]
    stages: Sequence[float] = ()
    train: Sequence[float] = ()
    watched: Sequence[Any] = ()


def train_once(
    recipe: Recipe, source: SourceDataset, watch: Callable[[Any], Any] = lambda ctx: None
) -> TrainedRun:
    """Train in a temporary folder; `watch` measures the context after setup and every epoch."""
    watched: list[Any] = []
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        train_recipe(recipe, source, out, watch=lambda ctx: watched.append(watch(ctx)))
        return read_accuracies(out)._replace(watched=watched)


def read_accuracies(folder: Path) -> TrainedRun:
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf8").splitlines()]
    record = json.loads((folder / "run.json").read_text("utf8"))
    test = [100 * row["val_accuracy"] for row in log if row["val_accuracy"] is not None]
    stages = [100 * accuracy for accuracy in record["stage_accuracies"]]
    return TrainedRun(test, stages, [100 * row["train_accuracy"] for row in log])


def get_kernels(ctx: Context) -> list[Tensor]:
    """Return the weights of the convolutions and linear layers, in forward order."""
    return [get_weight(ctx.model, f"{name}.weight").detach() for name in ctx.roles.layers]
