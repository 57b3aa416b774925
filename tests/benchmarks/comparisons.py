"""What people use today beside fsbench: the rows of the table that `make benchmarks` writes.

Every row is a function that takes rounds in a fresh process; both sides use the same threads, the
same network and the same images:

    episodes     the official pipeline: for every episode load its images, run the frozen network,
                 train a linear head (finetune.py of https://github.com/IBM/cdfsl-benchmark: SGD,
                 lr 0.01, momentum 0.9, dampening 0.9, weight decay 0.001, 100 epochs, batches of
                 4). That script runs the network again for every mini-batch; here it runs once per
                 episode, which is faster. A few episodes are timed: the others take as long.
    centroid     easyfsl: its sampler, collation, PrototypicalNetworks and `evaluate` on features
    logistic     scikit-learn: draw, fit and predict, one episode after the other, on features
    pretrain     a bare training loop on images in memory: random crop and flip of the batch, SGD
    extraction   a loop as in timm's validate.py: DataLoader, channels last, inference mode
    heads        nn.Linear and torch.optim.SGD, one episode after the other (benchmarks/heads.py)
    affine       autograd and torch.optim.SGD on a copy of the network (benchmarks/affine.py)

fsbench's side is the whole command with an empty cache for `episodes`, the public function with
cached features and results written for the heads, epochs of the training loop with its logs, and
the feature store with its hashing and writing.
"""

import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from benchmarks import affine, heads
from benchmarks.methods import generated, recipe
from benchmarks.pairing import Round, take_paired_rounds, timer
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.utils.data import DataLoader, Dataset, Sampler

import fsbench
from fsbench.backbones import load_backbone
from fsbench.backbones.features import FeatureRequest, FeatureStore, feature_block_size
from fsbench.core.progress import SILENT
from fsbench.core.specs import ImageSpec
from fsbench.data import DataRoots, describe_dataset, load_target
from fsbench.data.base import TargetDataset
from pretrain.training.loop import Trainer

N_WAY, K_SHOT, N_QUERY, EPISODES = 5, 5, 15, 600
WORKERS = 2
MODEL = "timm/resnet18"
TASK = f"eurosat:{N_WAY}w{K_SHOT}s"
CACHED_SIDE = 64
"""Side (px) of the images whose features the heads share: it changes nothing of their time."""


class Settings(NamedTuple):
    """data: folder with EuroSAT; threads: of torch; quick: a few rounds, to try the script."""

    data: str
    threads: int
    quick: bool = False

    def limit(self, rounds: int) -> int:
        """Return this number of rounds, or one to try the script."""
        return 1 if self.quick else rounds


class Unavailable(Exception):
    """A package that a row needs is not installed, and what installs it."""


class Case(NamedTuple):
    """A row of the table. bound: least ratio, None where nothing is promised."""

    work: str
    plain: str
    command: str
    unit: str
    bound: float | None
    processes: int
    take: Callable[[Settings], list[Round]]

    def take_rounds(self, settings: Settings) -> list[Round]:
        torch.set_num_threads(settings.threads)
        return self.take(settings)


class Images(Dataset[tuple[Tensor, int]]):
    """Decoded, resized and normalised images of a data set, as torchvision's transforms do it."""

    def __init__(self, dataset: TargetDataset, side: int) -> None:
        from torchvision import transforms

        self.files = [dataset.root / path for path in dataset.paths]
        self.labels = dataset.labels.tolist()
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        self.transform = transforms.Compose(
            [
                transforms.Resize([ImageSpec(input_size=side).resize] * 2),
                transforms.CenterCrop(side),
                transforms.ToTensor(),
                transforms.Normalize(mean, std),
            ]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        with Image.open(self.files[index]) as image:
            return self.transform(image.convert("RGB")), self.labels[index]


def load_batches(images: Images, **batches: Any) -> DataLoader[tuple[Tensor, int]]:
    """Return a loader whose workers are forks: new interpreters would start for two seconds each.

    A fresh process of a benchmark was spawned, and a DataLoader would start its workers likewise.
    """
    return DataLoader(images, num_workers=WORKERS, multiprocessing_context="fork", **batches)


def load_eurosat(settings: Settings) -> TargetDataset:
    return load_target("eurosat", DataRoots.parse([settings.data] if settings.data else []))


def draw_episodes(dataset: TargetDataset, episodes: int) -> Iterator[list[int]]:
    """Yield the images of one episode after the other, class by class."""
    rng = np.random.default_rng(0)
    for _ in range(episodes):
        classes = rng.choice(list(dataset.by_class), N_WAY, replace=False)
        images = [rng.choice(dataset.by_class[c], K_SHOT + N_QUERY, replace=False) for c in classes]
        yield np.concatenate(images).tolist()


def take_episodes(settings: Settings) -> list[Round]:
    """Seconds per episode: the official pipeline, and a whole command with an empty cache."""
    import timm

    side, timed = (64, 4) if settings.quick else (224, 10)
    dataset = load_eurosat(settings)
    images = Images(dataset, side)
    network = timm.create_model("resnet18", num_classes=0).eval()

    def plain() -> None:
        batches = list(draw_episodes(dataset, timed))
        for x, _ in load_batches(images, batch_sampler=batches):
            with torch.no_grad():
                features = network(x)
            by_class = features.unflatten(0, (N_WAY, -1))
            support, query = (part.flatten(0, 1) for part in by_class.tensor_split([K_SHOT], 1))
            heads.train_plain_head(support, query, N_WAY, 100)

    command = [sys.executable, "-m", "fsbench", "episodic", "-m", MODEL, "--random-init", "0"]
    command += ["-t", TASK, "--input-size", str(side), "--threads", str(settings.threads)]
    command += ["--episodes", str(EPISODES), "--workers", str(WORKERS), "--quiet"]
    command += ["--data", settings.data] if settings.data else []

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            places = ["--cache", f"{folder}/cache", "-o", f"{folder}/results"]
            subprocess.run([*command, *places], check=True, stdout=subprocess.DEVNULL)

    return take_paired_rounds(timer(plain, timed), timer(ours, EPISODES), settings.limit(2))


class Cached:
    """Features of EuroSAT, and fsbench's evaluation on them."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self.cache, self.runs = settings, folder / "cache", 0
        self.dataset, self.episodes = load_eurosat(settings), 200 if settings.quick else EPISODES
        self.backbone = load_backbone(MODEL, random_init=0)
        record = describe_dataset(self.dataset, self.cache, SILENT)
        store, image = FeatureStore(self.cache), ImageSpec(input_size=CACHED_SIDE)
        self.features = store.get(
            FeatureRequest(self.backbone, self.dataset, image, record.fingerprint)
        )

    def evaluate(self, head: str) -> None:
        """Evaluate all episodes; results go to a new folder."""
        fsbench.evaluate(
            self.backbone,
            f"{TASK}/{head}",
            data=self.settings.data or (),
            episodes=self.episodes,
            input_size=CACHED_SIDE,
            cache=self.cache,
            progress=False,
        )

    def take(self, plain: Callable[[], object], head: str) -> list[Round]:
        sides = [timer(work, self.episodes) for work in (plain, lambda: self.evaluate(head))]
        return take_paired_rounds(sides[0], sides[1], self.settings.limit(5))


def import_easyfsl() -> ModuleType:
    """Raise Unavailable if easyfsl is not installed."""
    try:
        import easyfsl.utils
    except ImportError as error:
        raise Unavailable("easyfsl is not installed: pip install 'fsbench[benchmarks]'") from error
    return easyfsl.utils


def take_centroid(settings: Settings) -> list[Round]:
    """Seconds per episode on cached features: easyfsl's own loop, and `--heads centroid`."""
    utils = import_easyfsl()
    from easyfsl.datasets import FeaturesDataset
    from easyfsl.methods import PrototypicalNetworks
    from easyfsl.samplers import TaskSampler

    with tempfile.TemporaryDirectory() as folder:
        cached = Cached(settings, Path(folder))
        embeddings, names = torch.from_numpy(np.array(cached.features)), cached.dataset.class_names
        features = FeaturesDataset(cached.dataset.labels.tolist(), embeddings, list(names))

        def plain() -> None:
            # easyfsl 1.5 hands data_source to torch's Sampler, which newer releases do not take.
            with patch.object(Sampler, "__init__", lambda self, data_source: None):
                sampler = TaskSampler(features, N_WAY, K_SHOT, N_QUERY, cached.episodes)
            loader = DataLoader(
                features, batch_sampler=sampler, collate_fn=sampler.episodic_collate_fn
            )
            model = PrototypicalNetworks(nn.Identity())
            utils.evaluate(model, loader, device="cpu", use_tqdm=False)

        return cached.take(plain, "centroid")


def take_logistic(settings: Settings) -> list[Round]:
    """Seconds per episode on cached features: a scikit-learn loop, and `--heads logistic`."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import normalize

    labels = np.arange(N_WAY).repeat(K_SHOT)
    with tempfile.TemporaryDirectory() as folder:
        cached = Cached(settings, Path(folder))

        def plain() -> None:
            for images in draw_episodes(cached.dataset, cached.episodes):
                rows = normalize(cached.features[images]).reshape(N_WAY, K_SHOT + N_QUERY, -1)
                model = LogisticRegression(C=1.0, max_iter=1000)
                model.fit(rows[:, :K_SHOT].reshape(len(labels), -1), labels)
                model.predict(rows[:, K_SHOT:].reshape(N_WAY * N_QUERY, -1))

        return cached.take(plain, "logistic")


class Training:
    """The same network, batches, precision and optimizer in a bare loop and in fsbench's."""

    def __init__(self, architecture: str, side: int, batch: int, steps: int, folder: Path) -> None:
        options = Namespace(architecture=architecture, width=None, side=side, batch=batch)
        self.recipe = recipe("normal", options).replace(
            {"plan.epochs": 1000, "validate_every": 1000}
        )
        self.batch, self.steps, self.side = batch, steps, side
        source = generated(side, batch, steps)
        self.trainer = Trainer(self.recipe, source, folder, torch.device("cpu"), SILENT)
        self.trainer._start()
        self.images = torch.from_numpy(source.train.images)
        self.labels = torch.from_numpy(source.train.labels)
        self.mean, self.std = (
            255 * torch.tensor(v).view(1, 3, 1, 1) for v in (source.mean, source.std)
        )

    @cached_property
    def network(self) -> nn.Module:
        built = self.trainer.ctx.architecture.build(self.trainer.ctx.classes, self.recipe.width)
        return built.to(memory_format=torch.channels_last).train()

    @cached_property
    def optimizer(self) -> torch.optim.SGD:
        r = self.recipe
        return torch.optim.SGD(
            self.network.parameters(), r.lr, r.momentum, weight_decay=r.weight_decay
        )

    def augment(self, images: Tensor) -> Tensor:
        """Return a random crop, flipped or not, of every padded image."""
        windows = pad(images, (4, 4, 4, 4)).unfold(2, self.side, 1).unfold(3, self.side, 1)
        rows, columns = torch.randint(0, 9, (2, len(images)))
        crops = windows[torch.arange(len(images)), :, rows, columns]
        return torch.where(torch.rand(len(images), 1, 1, 1) < 0.5, crops.flip(3), crops)

    def bare(self) -> None:
        """One epoch of the plain loop."""
        for chosen in torch.randperm(self.steps * self.batch).split(self.batch):
            x = self.augment(self.images[chosen]).float().sub_(self.mean).div_(self.std)
            x = x.contiguous(memory_format=torch.channels_last)
            self.optimizer.zero_grad()
            smoothing = self.recipe.label_smoothing
            loss = cross_entropy(self.network(x), self.labels[chosen], label_smoothing=smoothing)
            loss.backward()
            self.optimizer.step()
            loss.item()

    def ours(self) -> None:
        """One epoch of fsbench's loop."""
        self.trainer._epoch(lambda images: None)


def take_training(
    settings: Settings, architecture: str, side: int, batch: int, steps: int
) -> list[Round]:
    """Seconds per image of a bare training loop and of `fsbench pretrain`."""
    with tempfile.TemporaryDirectory() as folder:
        training = Training(architecture, side, batch, 2 if settings.quick else steps, Path(folder))
        sides = [timer(work, training.steps * batch) for work in (training.bare, training.ours)]
        training.ours()  # the first epoch counts operations
        return take_paired_rounds(sides[0], sides[1], 2, 0 if settings.quick else 15)


def take_extraction(settings: Settings, side: int, most: int) -> list[Round]:
    """Seconds per image of a validation loop and of the feature store with an empty cache."""
    whole = load_eurosat(settings)
    chosen = np.arange(len(whole))[:: -(-len(whole) // (128 if settings.quick else most))]
    dataset = whole.take(chosen)
    backbone = load_backbone(MODEL, random_init=0)
    size = feature_block_size(backbone.facts.feature_dim, side)
    images = Images(dataset, side)

    def plain() -> None:
        outputs = []
        with torch.inference_mode():
            for x, _ in load_batches(images, batch_size=size):
                outputs.append(backbone.module(x.contiguous(memory_format=torch.channels_last)))
        torch.cat(outputs)

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = FeatureStore(Path(folder), workers=WORKERS)
            store.get(FeatureRequest(backbone, dataset, ImageSpec(input_size=side), "bench"))

    sides = [timer(work, len(dataset)) for work in (plain, ours)]
    return take_paired_rounds(sides[0], sides[1], 2, 0 if settings.quick else 15)


def take_heads(settings: Settings, dim: int, k_shot: int) -> list[Round]:
    """Seconds per episode of a plain loop over cached features and of the batched heads."""
    return heads.compare(dim, k_shot, settings.limit(3))


def take_affine(settings: Settings, row: affine.Row) -> list[Round]:
    """Seconds per step and episode of a plain loop and of the batched tuning."""
    return affine.compare(affine.Case(row, steps=2 if settings.quick else 8), settings.limit(3))


EPISODIC_COMMAND = f"fsbench episodic -m {MODEL} -t {TASK}"
BARE_LOOP = "bare torch loop: same network, augmentation, SGD"
CASES = {
    "episodes": Case(
        f"{EPISODES} episodes of EuroSAT from images to result (ResNet-18, 224 px, 5 shots)",
        "official pipeline: images, network and head for every episode",
        f"{EPISODIC_COMMAND} --input-size 224",
        "episodes/s",
        None,
        1,
        take_episodes,
    ),
    "centroid": Case(
        f"{EPISODES} episodes on cached features, nearest centroid",
        "easyfsl 1.5: TaskSampler, PrototypicalNetworks, evaluate",
        f"{EPISODIC_COMMAND} --heads centroid",
        "episodes/s",
        None,
        3,
        take_centroid,
    ),
    "logistic": Case(
        f"{EPISODES} episodes on cached features, logistic regression",
        "scikit-learn: LogisticRegression per episode",
        f"{EPISODIC_COMMAND} --heads logistic",
        "episodes/s",
        None,
        3,
        take_logistic,
    ),
    "pretrain-32": Case(
        "training, pilot_resnet, 32 px, batch 64",
        BARE_LOOP,
        "fsbench pretrain paper/normal --set architecture=pilot_resnet input_size=32 batch_size=64",
        "images/s",
        0.95,
        3,
        partial(take_training, architecture="pilot_resnet", side=32, batch=64, steps=20),
    ),
    "pretrain-64": Case(
        "training, ResNet-18, 64 px, batch 128",
        BARE_LOOP,
        "fsbench pretrain paper/normal --set architecture=timm/resnet18 batch_size=128",
        "images/s",
        0.95,
        3,
        partial(take_training, architecture="timm/resnet18", side=64, batch=128, steps=4),
    ),
}
CASES |= {
    f"extraction-{side}": Case(
        f"features of image files, ResNet-18, {side} px",
        "loop of timm's validate.py",
        f"{EPISODIC_COMMAND} --input-size {side}",
        "images/s",
        0.9,
        3,
        partial(take_extraction, side=side, most=most),
    )
    for side, most in ((64, 1000), (224, 250))
}
HEADS_BOUNDS = {1: 100, 5: 100, 20: 100, 50: 60}
"""Shots -> least ratio of the batched heads."""
AFFINE_BOUNDS = {32: 5, 64: 2, 224: 1}
"""Side (px) -> least ratio of affine tuning on a CPU."""
GPU_BOUND = 8
CASES |= {
    f"heads-{dim}-{k_shot}": Case(
        f"linear heads on cached features of {dim} dimensions, {k_shot}-shot",
        "plain loop: nn.Linear and SGD for every episode",
        f"{EPISODIC_COMMAND.replace(f'w{K_SHOT}s', f'w{k_shot}s')} --heads linear",
        "episodes/s",
        bound,
        5 if k_shot == 1 else 1,  # the shortest depend most on where memory comes to lie
        partial(take_heads, dim=dim, k_shot=k_shot),
    )
    for dim in heads.DIMS
    for k_shot, bound in HEADS_BOUNDS.items()
}
CASES |= {
    f"affine-{row.ref.partition('/')[2]}-{row.side}-{row.k_shot}": Case(
        f"affine tuning, {row.ref.partition('/')[2]}, {row.side} px, {row.k_shot}-shot",
        "plain loop: a copy of the network for every episode, autograd, SGD",
        f"fsbench episodic -m {row.ref} -t eurosat:{N_WAY}w{row.k_shot}s --heads affine "
        f"--input-size {row.side}",
        "steps/s",
        GPU_BOUND if row.gpu else AFFINE_BOUNDS[row.side],
        3 if row.side == 32 else 1,
        partial(take_affine, row=row),
    )
    for row in affine.ROWS
    if not row.gpu or torch.cuda.is_available()
}
