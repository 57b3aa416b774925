"""What people use today beside fsbench: the rows of the table that `make benchmarks` writes.

Every row has a function that makes two sides, which are timed in fresh processes; both use the same
threads, the same network and the same images:

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
    method       a step of `normal` (benchmarks/methods.py)

fsbench's side is the whole command with an empty cache for `episodes`, the public function with
cached features and results written for the heads, epochs of the training loop with its logs, and
the feature store with its hashing and writing.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from benchmarks import affine, heads, methods
from benchmarks.methods import Network, generate_source, make_recipe
from benchmarks.pairing import Round, Settings, Side, take_paired_rounds, timer
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.utils.data import DataLoader, Dataset, Sampler

import fsbench
from fsbench.backbones import load_backbone
from fsbench.backbones.features import FeatureRequest, FeatureStore, feature_block_size
from fsbench.backbones.kernels import exact_float32
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
ROUNDS, SECONDS = 2, 15
"""Least number and time of the rounds that a process takes."""
Sides = tuple[Side, Side]
"""The plain one, and that of fsbench."""


class Case(NamedTuple):
    """A row of the table. bound: least ratio, None where nothing is promised."""

    work: str
    plain: str
    command: str
    unit: str
    bound: float | None
    make_sides: Callable[[Settings, Path], Sides]

    def take_rounds(self, settings: Settings) -> list[Round]:
        torch.set_num_threads(settings.threads)
        rounds, least = (1, 0) if settings.quick else (ROUNDS, SECONDS)
        with tempfile.TemporaryDirectory() as folder:
            return take_paired_rounds(*self.make_sides(settings, Path(folder)), rounds, least)


class Images(Dataset[tuple[Tensor, int]]):
    """Decoded, resized and normalised images of a data set, as torchvision's transforms do it."""

    def __init__(self, dataset: TargetDataset, side: int) -> None:
        from torchvision import transforms

        self.files = [dataset.root / path for path in dataset.paths]
        self.labels = dataset.labels.tolist()
        self.transform = transforms.Compose(
            [
                transforms.Resize([ImageSpec(input_size=side).resize] * 2),
                transforms.CenterCrop(side),
                transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
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


def compare_pipelines(settings: Settings, folder: Path) -> Sides:
    """Seconds per episode: the official pipeline, and a whole command with an empty cache."""
    import timm

    side, timed = (64, 4) if settings.quick else (224, 10)
    dataset = load_eurosat(settings)
    images = Images(dataset, side)
    network = timm.create_model("resnet18", num_classes=0).eval()

    def plain() -> None:
        for x, _ in load_batches(images, batch_sampler=[*draw_episodes(dataset, timed)]):
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
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            outputs = ["--cache", f"{empty}/cache", "-o", f"{empty}/results"]
            subprocess.run([*command, *outputs], check=True, stdout=subprocess.DEVNULL)

    return timer(plain, timed), timer(ours, EPISODES)


class Cached(NamedTuple):
    """A data set, the features (n, D) of its images, and how many episodes are evaluated."""

    dataset: TargetDataset
    features: NDArray[np.float32]
    episodes: int


def compare_heads(
    settings: Settings, folder: Path, head: str, run_plain: Callable[[Cached], None]
) -> Sides:
    """Seconds per episode on cached features: the loop of another package, and `--heads`."""
    dataset, episodes = load_eurosat(settings), 200 if settings.quick else EPISODES
    backbone, image = load_backbone(MODEL, random_init=0), ImageSpec(input_size=CACHED_SIDE)
    fingerprint = describe_dataset(dataset, folder, SILENT).fingerprint
    features = FeatureStore(folder).get(FeatureRequest(backbone, dataset, image, fingerprint))

    def ours() -> None:
        fsbench.evaluate(
            backbone,
            f"{TASK}/{head}",
            data=settings.data or (),
            episodes=episodes,
            input_size=CACHED_SIDE,
            cache=folder,
            progress=False,
        )

    cached = Cached(dataset, features, episodes)
    return timer(partial(run_plain, cached), episodes), timer(ours, episodes)


def run_easyfsl(cached: Cached) -> None:
    from easyfsl.datasets import FeaturesDataset
    from easyfsl.methods import PrototypicalNetworks
    from easyfsl.samplers import TaskSampler
    from easyfsl.utils import evaluate

    embeddings, names = torch.from_numpy(np.array(cached.features)), cached.dataset.class_names
    features = FeaturesDataset(cached.dataset.labels.tolist(), embeddings, list(names))
    # easyfsl 1.5 hands data_source to torch's Sampler, which newer releases do not take.
    with patch.object(Sampler, "__init__", lambda self, data_source: None):
        sampler = TaskSampler(features, N_WAY, K_SHOT, N_QUERY, cached.episodes)
    loader = DataLoader(features, batch_sampler=sampler, collate_fn=sampler.episodic_collate_fn)
    evaluate(PrototypicalNetworks(nn.Identity()), loader, device="cpu", use_tqdm=False)


def run_scikit_learn(cached: Cached) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import normalize

    labels = np.arange(N_WAY).repeat(K_SHOT)
    for images in draw_episodes(cached.dataset, cached.episodes):
        rows = normalize(cached.features[images]).reshape(N_WAY, K_SHOT + N_QUERY, -1)
        model = LogisticRegression(C=1.0, max_iter=1000)
        model.fit(rows[:, :K_SHOT].reshape(len(labels), -1), labels)
        model.predict(rows[:, K_SHOT:].reshape(N_WAY * N_QUERY, -1))


def compare_training(settings: Settings, folder: Path, network: Network, steps: int) -> Sides:
    """Seconds per image of a bare training loop and of `fsbench pretrain`."""
    side, batch, steps = network.side, network.batch, 2 if settings.quick else steps
    recipe = make_recipe("normal", network).replace({"plan.epochs": 1000, "validate_every": 1000})
    source, device = generate_source(side, batch, steps), torch.device(settings.device)
    trainer = Trainer(recipe, source, folder, device, SILENT)
    trainer._start()
    model = trainer.ctx.architecture.build(trainer.ctx.classes, recipe.width)
    model.to(device, memory_format=torch.channels_last).train()
    settings_of_sgd = (recipe.lr, recipe.momentum, 0.0, recipe.weight_decay)
    optimizer = torch.optim.SGD(model.parameters(), *settings_of_sgd)
    arrays = source.train.images, source.train.labels
    pixels, labels = (torch.from_numpy(array).to(device) for array in arrays)
    statistics = (torch.tensor(v, device=device) for v in (source.mean, source.std))
    mean, std = (255 * values.view(1, 3, 1, 1) for values in statistics)

    def augment(images: Tensor) -> Tensor:
        """Return a random crop, flipped or not, of every padded image."""
        windows = pad(images, (4, 4, 4, 4)).unfold(2, side, 1).unfold(3, side, 1)
        rows, columns = torch.randint(0, 9, (2, len(images)), device=device)
        crops = windows[torch.arange(len(images), device=device), :, rows, columns]
        flipped = torch.rand(len(images), 1, 1, 1, device=device) < 0.5
        return torch.where(flipped, crops.flip(3), crops)

    def plain() -> None:
        """One epoch of the bare loop, which waits for a GPU at its end alone."""
        for chosen in torch.randperm(steps * batch, device=device).split(batch):
            x = augment(pixels[chosen]).float().sub_(mean).div_(std)
            x = x.contiguous(memory_format=torch.channels_last)
            optimizer.zero_grad()
            smoothing = recipe.label_smoothing
            loss = cross_entropy(model(x), labels[chosen], label_smoothing=smoothing)
            loss.backward()
            optimizer.step()
        loss.item()

    def ours() -> None:
        trainer._epoch(lambda images: None)

    ours()  # the first epoch counts operations
    return timer(plain, steps * batch), timer(ours, steps * batch)


def compare_extraction(settings: Settings, folder: Path, side: int, most: int) -> Sides:
    """Seconds per image of a validation loop and of the feature store with an empty cache."""
    whole = load_eurosat(settings)
    chosen = np.arange(len(whole))[:: -(-len(whole) // (128 if settings.quick else most))]
    dataset = whole.take(chosen)
    backbone = load_backbone(MODEL, random_init=0, device=settings.device)
    size = feature_block_size(backbone.facts.feature_dim, side)
    images = Images(dataset, side)

    def plain() -> None:
        with torch.inference_mode(), exact_float32(settings.device):
            for x, _ in load_batches(images, batch_size=size):
                x = x.to(settings.device).contiguous(memory_format=torch.channels_last)
                backbone.module(x)

    def ours() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            store = FeatureStore(Path(empty), workers=WORKERS, device=settings.device)
            store.get(FeatureRequest(backbone, dataset, ImageSpec(input_size=side), "bench"))

    return timer(plain, len(dataset)), timer(ours, len(dataset))


EPISODIC = f"fsbench episodic -m {MODEL} -t {TASK}"
RESNET = Network(MODEL, 64, 128)
PRETRAIN = "fsbench pretrain paper/normal --set"
BARE_LOOP = "bare torch loop: same network, augmentation, SGD"
CASES = {
    "episodes": Case(
        f"{EPISODES} episodes of EuroSAT from images to result (ResNet-18, 224 px, 5 shots)",
        "official pipeline: images, network and head for every episode",
        f"{EPISODIC} --input-size 224",
        "episodes/s",
        None,
        compare_pipelines,
    ),
    "centroid": Case(
        f"{EPISODES} episodes on cached features, nearest centroid",
        "easyfsl 1.5: TaskSampler, PrototypicalNetworks, evaluate",
        f"{EPISODIC} --heads centroid",
        "episodes/s",
        None,
        partial(compare_heads, head="centroid", run_plain=run_easyfsl),
    ),
    "logistic": Case(
        f"{EPISODES} episodes on cached features, logistic regression",
        "scikit-learn: LogisticRegression per episode",
        f"{EPISODIC} --heads logistic",
        "episodes/s",
        None,
        partial(compare_heads, head="logistic", run_plain=run_scikit_learn),
    ),
    "pretrain-32": Case(
        "training, pilot_resnet, 32 px, batch 64",
        BARE_LOOP,
        f"{PRETRAIN} architecture=pilot_resnet input_size=32 batch_size=64",
        "images/s",
        0.95,
        partial(compare_training, network=Network("pilot_resnet", 32, 64), steps=20),
    ),
    "pretrain-64": Case(
        "training, ResNet-18, 64 px, batch 128",
        BARE_LOOP,
        f"{PRETRAIN} architecture=timm/resnet18 batch_size=128",
        "images/s",
        0.95,
        partial(compare_training, network=RESNET, steps=4),
    ),
}
CASES |= {
    f"extraction-{side}": Case(
        f"features of image files, ResNet-18, {side} px",
        "loop of timm's validate.py",
        f"{EPISODIC} --input-size {side}",
        "images/s",
        0.9,
        partial(compare_extraction, side=side, most=most),
    )
    for side, most in ((64, 1000), (224, 250))
}
CASES |= {
    f"heads-{dim}-{row.k_shot}": Case(
        f"linear heads on cached features of {dim} dimensions, {row.k_shot}-shot",
        "plain loop: nn.Linear and SGD for every episode",
        f"{EPISODIC.replace(f'w{K_SHOT}s', f'w{row.k_shot}s')} --heads linear",
        "episodes/s",
        row.bound,
        partial(heads.make_sides, row=row, dim=dim),
    )
    for dim in heads.DIMS
    for row in heads.ROWS
}
AFFINE = {
    f"affine-{row.ref.partition('/')[2]}-{row.side}-{row.k_shot}": Case(
        f"affine tuning, {row.ref.partition('/')[2]}, {row.side} px, {row.k_shot}-shot",
        "plain loop: a copy of the network for every episode, autograd, SGD",
        f"fsbench episodic -m {row.ref} -t eurosat:{N_WAY}w{row.k_shot}s --heads affine "
        f"--input-size {row.side}",
        "steps/s",
        row.bound,
        partial(affine.make_sides, row=row),
    )
    for row in affine.ROWS
}
ON_GPU = ("affine-resnet50-64-5", "affine-resnet50-64-20")
CASES |= {name: case for name, case in AFFINE.items() if name not in ON_GPU}
CASES |= {
    f"method-{name}": Case(
        f"training with {name}, ResNet-18, 64 px, batch 128",
        "fsbench pretrain paper/normal",
        f"fsbench pretrain paper/{name}",
        "images/s",
        round(1 / bound, 2),
        partial(methods.make_sides, name=name, network=RESNET),
    )
    for name, bound in methods.BOUNDS.items()
}
ON_BOTH = ("pretrain-64", "extraction-64", "extraction-224", "heads-2048-5", "heads-2048-50")
GPU_CASES = {name: CASES[name]._replace(bound=None) for name in ON_BOTH}
GPU_CASES |= {name: AFFINE[name] for name in ON_GPU}
"""Rows that a GPU takes (benchmarks/gpu.py); the bounds of a CPU promise nothing there."""
