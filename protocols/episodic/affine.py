"""Episodic head `affine`: a new linear classifier and the backbone's affine parameters are tuned.

Source: Yazdanpanah et al., "Revisiting Learnable Affines for Batch Norm in Few-Shot Transfer
Learning", CVPR 2022 (https://github.com/MosyMosy/Feature-Normalization), with the fine-tuning loop
of MuawizChaudhary/STARTUP, `evaluation/finetune_resnet18.py`: scale and shift of every
normalization layer by plain SGD (AffineSpec), the classifier as in `linear` (HeadSpec), kernels
frozen, BatchNorm with the source's statistics. Each episode's queries are scored by its own
network. Initial classifiers and the order of the support images are the draws of `linear`.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from fsbench.backbones.architectures import affine_layers
from fsbench.backbones.base import Backbone
from fsbench.backbones.kernels import exact_float32, has_bfloat16
from fsbench.core.errors import UsageError
from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.specs import AffineSpec, EpisodicSpec
from fsbench.data.episodes import Episode, EpisodeSampler
from protocols.affine.network import take_rows
from protocols.affine.tuning import DTYPES, AffineTuning, read_episode_images
from protocols.base import Inputs
from protocols.heads import gram
from protocols.heads.execution import OutOfMemory, halve_episodes, retry_with_halvings
from protocols.heads.gram import UntrainedHeads
from protocols.heads.scoring import make_episode_records

ADAPTATION = "affine"
FEATURES = False

BLOCKS, BLOCK_PIXELS = (100, 50, 20, 10, 4), 2**19
"""Episodes of a block on a CPU, all of which divide 100 and 600, and most pixels of a step."""
GPU_BLOCKS, GPU_BLOCK_PIXELS = (600, 300, 150, 75), 2**22
"""The same on a GPU; the smallest block gives each of eight ranks one of 600 episodes."""

TIMED_STEPS = 3


def block_size(spec: EpisodicSpec, dim: int, device: str = "cpu") -> int:
    """Return the largest block whose steps have few enough pixels, else the smallest one.

    With batches of 4 images, on a CPU 100 episodes up to 36 px, 50 up to 51 px, 20 up to 80 px, 10
    up to 114 px, then 4. On a GPU 600 up to 41 px, 300 up to 59 px, 150 up to 83 px, then 75, and
    fewer after halvings. The host takes longer to launch a smaller step than a GPU to compute it; a
    larger one has no less work per image and needs more memory.
    """
    sizes, most = (BLOCKS, BLOCK_PIXELS) if device == "cpu" else (GPU_BLOCKS, GPU_BLOCK_PIXELS)
    pixels = spec.head.batch_size * spec.image.input_size**2
    return next((size for size in sizes if size * pixels <= most), sizes[-1])


def piece_size(spec: EpisodicSpec, device: str, halvings: int = 0) -> int:
    """Return the episodes per forward pass: a block, fewer after halvings."""
    return halve_episodes(block_size(spec, 0, device), halvings)


def evaluate_block(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
    """Evaluate the episodes of one block; without a backbone, features replace images and only the
    classifier is trained.

    Raise DataError if the data set is too small, UsageError if there is nothing affine to tune or
    the device lacks bfloat16.
    """
    require_tunable(inputs.backbone, spec, inputs.device)
    sampler = EpisodeSampler.of(spec.episode, inputs.dataset)
    size = block_size(spec, 0, inputs.device)
    episodes = [sampler.episode(i) for i in range(block * size, (block + 1) * size)]
    step = piece_size(spec, inputs.device, inputs.halvings)
    pieces = [episodes[low : low + step] for low in range(0, size, step)]
    with exact_kernels(inputs.device, spec, inputs.halvings):
        return concatenate([tune_piece(inputs, spec, piece) for piece in pieces])


def tune_piece(inputs: Inputs, spec: EpisodicSpec, episodes: Sequence[Episode]) -> EpisodeRecords:
    """Tune the networks of these episodes together and score them."""
    tuning = build_tuning(inputs, spec, [episode.index for episode in episodes])
    images = read_episode_images(inputs, spec.image, episodes)
    labels = torch.arange(spec.episode.n_way, device=inputs.device)
    labels = labels.repeat_interleave(spec.episode.k_shot).repeat(len(episodes))
    for rows in iterate_batches(inputs, spec, episodes):
        tuning.step(take_rows(images.support, rows), labels[rows], rows)
    return make_episode_records(episodes, tuning.logits(images.query), spec.episode.n_query)


def build_tuning(inputs: Inputs, spec: EpisodicSpec, indices: Sequence[int]) -> AffineTuning:
    """Return the untuned networks and classifiers of these episodes."""
    e, backbone = spec.episode, inputs.backbone
    dim = inputs.features.shape[1] if backbone is None else backbone.facts.feature_dim
    reference = torch.empty(0, dtype=DTYPES[spec.head.dtype], device=inputs.device)
    names = (e.stream, inputs.dataset.name)
    start = gram.draw_untrained_heads(names, indices, dim, e.n_way, reference)
    heads = UntrainedHeads(start.weight[:, :dim].contiguous(), start.bias)
    return AffineTuning(backbone, spec, heads)


def iterate_batches(
    inputs: Inputs, spec: EpisodicSpec, episodes: Sequence[Episode]
) -> Iterator[Tensor]:
    """Yield rows (E * b,) of the stacked support, one step each; an epoch may end with a smaller
    batch."""
    e, h = spec.episode, spec.head
    n, indices = e.n_way * e.k_shot, [episode.index for episode in episodes]
    names = (e.stream, inputs.dataset.name)
    orders = gram.draw_orders(names, indices, h.epochs, n, inputs.device)
    stacked = orders + n * torch.arange(len(indices), device=inputs.device)[:, None, None]
    for epoch in stacked.unbind(1):
        for low in range(0, n, h.batch_size):
            yield epoch[:, low : low + h.batch_size].flatten()


def require_tunable(backbone: Backbone | None, spec: EpisodicSpec, device: str) -> None:
    """Raise UsageError for a backbone without normalization layers, or bfloat16 without units."""
    if backbone is not None and not affine_layers(backbone.module):
        raise UsageError(
            f"{backbone.facts.ref} has no normalization layer with affine parameters",
            fix="use --heads linear",
        )
    if backbone is not None and backbone.facts.feature_spec.dtype != "fp32":
        raise UsageError(
            f"--dtype {backbone.facts.feature_spec.dtype} with affine tuning, which reads images",
            fix="leave --dtype out; affine.dtype in a spec file sets that of tuning",
        )
    if (spec.affine or AffineSpec()).dtype == "bfloat16" and not has_bfloat16(device):
        raise UsageError(
            f"affine.dtype bfloat16: {device} has no bfloat16 units",
            fix="leave affine.dtype out, or use a CPU with avx512_bf16 or amx_bf16, or a GPU",
        )


@contextmanager
def exact_kernels(device: str, spec: EpisodicSpec, halvings: int = 0) -> Iterator[None]:
    """Use deterministic kernels without TF32. Raise OutOfMemory when memory is too small."""
    try:
        with exact_float32(device):
            yield
    except torch.OutOfMemoryError as error:
        size = piece_size(spec, device, halvings)
        raise OutOfMemory(size, spec.image.input_size, device) from error


def block_seconds(backbone: Backbone, spec: EpisodicSpec, device: str) -> float:
    """Estimate the seconds of one block from a few timed steps on black images.

    Raise UsageError for what cannot be tuned.
    """
    require_tunable(backbone, spec, device)
    return retry_with_halvings(partial(time_pieces, backbone, spec, device), lambda text: None)


def time_pieces(backbone: Backbone, spec: EpisodicSpec, device: str, halvings: int) -> float:
    """Estimate the seconds of one block for this many halvings. Raise OutOfMemory."""
    e, h = spec.episode, spec.head
    size = piece_size(spec, device, halvings)
    with exact_kernels(device, spec, halvings):
        step = time_step(backbone, spec, device, size)
    steps = -(-e.n_way * e.k_shot // h.batch_size) * h.epochs
    scoring = e.n_way * e.n_query / h.batch_size / 2
    return step * (steps + scoring) * -(-block_size(spec, 0, device) // size)


def time_step(backbone: Backbone, spec: EpisodicSpec, device: str, episodes: int) -> float:
    """Time one full mini-batch of a piece of `episodes` episodes, after a warm-up step."""
    side, h = spec.image.input_size, spec.head
    heads = torch.zeros(episodes, backbone.facts.feature_dim, spec.episode.n_way, device=device)
    heads = heads.to(DTYPES[h.dtype])
    tuning = AffineTuning(backbone, spec, UntrainedHeads(heads, heads[:, 0]))
    images = torch.zeros(episodes * h.batch_size, 3, side, side, dtype=torch.uint8, device=device)
    labels = torch.zeros(len(images), dtype=torch.int64, device=device)
    started = 0.0
    for i in range(TIMED_STEPS + 1):
        tuning.step(images, labels)
        float(tuning.bias.detach().sum())  # waits for the device
        started = started if i else time.monotonic()
    return (time.monotonic() - started) / TIMED_STEPS
