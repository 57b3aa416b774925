"""Affine tuning against a plain loop over single episodes (tolerances: protocols/README.md)."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import timm
import torch
from support.affine import SIDE, move_inputs, ours, plain, spec, toy_inputs
from support.cases import read_cases
from torch import Tensor, nn

from fsbench import backbones, evaluate
from fsbench.backbones import kernels
from fsbench.backbones.architectures import count_affine
from fsbench.backbones.base import Backbone, weights_hash
from fsbench.backbones.kernels import exact_float32, has_bfloat16_kernels
from fsbench.core.errors import UsageError
from fsbench.core.specs import FeatureSpec, KnnSpec
from fsbench.data.episodes import EpisodeSampler
from protocols.affine import convolution, network
from protocols.affine.convolution import (
    FrozenConvolution,
    PackedConvolution,
    PairedColumns,
    Products,
)
from protocols.affine.network import take_rows
from protocols.affine.tuning import read_episode_images
from protocols.base import Inputs
from protocols.episodic import affine
from protocols.episodic.affine import (
    block_size,
    build_tuning,
    evaluate_block,
    iterate_batches,
    piece_size,
)
from protocols.heads.scoring import make_episode_records

needs_bfloat16 = pytest.mark.skipif(
    not has_bfloat16_kernels(), reason="oneDNN has no bfloat16 kernels for this processor"
)


@pytest.fixture(scope="module")
def toy() -> Inputs:
    return toy_inputs()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affine, "BLOCKS", (10,))


def images_of(channels: int, side: int) -> Tensor:
    maps = torch.randn(4, channels, side, side)
    return maps.contiguous(memory_format=torch.channels_last)


def largest(a: Tensor, b: Tensor) -> float:
    """Largest difference, relative to the largest logit."""
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"k_shot": 3, "head": {"epochs": 12}, "affine": {"lr": 0.02, "weight_decay": 0.1}},
        {"head": {"epochs": 20}, "affine": {"momentum": 0.5, "dampening": 0.3}},
        {"bn_mode": "train", "head": {"epochs": 20}},
    ],
    ids=["whole schedule", "three shots", "momentum", "bn train"],
)
def test_float64_equals_the_plain_loop(toy: Inputs, fields: dict[str, Any], device: str) -> None:
    setting = spec(**fields)
    scores = ours(move_inputs(toy, device), setting, range(6, 8))
    for row, i in enumerate((6, 7)):
        assert largest(scores[row], plain(toy, setting, i)) <= 1e-6


def test_float32_equals_the_plain_loop_for_ten_steps_and_later_flips_few_queries(
    toy: Inputs, device: str
) -> None:
    setting, moved = spec(k_shot=2, dtype="float32"), move_inputs(toy, device)
    with exact_float32(device):
        scores = ours(moved, setting, range(2), steps=10)
    for i in range(2):
        assert largest(scores[i], plain(toy, setting, i, steps=10)) <= 1e-4
    setting = spec(dtype="float32")
    with exact_float32(device):
        scores = ours(moved, setting, range(4))
    expected = torch.stack([plain(toy, setting, i) for i in range(4)])
    assert (scores.argmax(2) != expected.argmax(2)).float().mean() <= 0.02
    truth = torch.arange(5).repeat_interleave(3)
    a, b = ((z.argmax(2) == truth).double().mean(1) for z in (scores, expected))
    assert abs((a - b).mean()) <= 0.02


class Tokens(nn.Module):
    """(B, C, H, W) -> (B, H * W, C)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(2).mT


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


def zoo() -> nn.Module:
    """Every kind of normalization layer that is known, torch's and timm's."""
    from timm import layers as t

    def conv() -> nn.Module:
        return nn.Conv2d(6, 6, 3, padding=1)

    maps = [
        t.BatchNormAct2d(6),
        t.GroupNormAct(6, num_groups=2),
        t.LayerNorm2d(6),
        t.LayerNormAct2d(6),
        t.RmsNorm2d(6),
        t.RmsNormAct2d(6),
        t.GroupNorm1(6),
        t.GroupNorm(6, num_groups=3),
        nn.InstanceNorm2d(6, affine=True),
        nn.BatchNorm2d(6, track_running_stats=False),
        nn.LayerNorm((6, 4, 4)),
    ]
    tokens = [nn.LayerNorm(6), nn.RMSNorm(6), t.RmsNorm(6), t.LayerNorm(6), nn.LayerNorm((16, 6))]
    net = nn.Sequential(nn.Conv2d(3, 6, 4, 4))
    for norm in maps:
        net.extend([conv(), norm])
    net.append(Tokens())
    for norm in tokens:
        net.extend([nn.Linear(6, 6), norm])
    for i, p in enumerate(net.parameters()):
        nn.init.uniform_(p, -0.5, 1.0, generator=torch.Generator().manual_seed(i))
    return net.append(Mean()).eval().requires_grad_(False)


def test_every_kind_of_norm_equals_the_plain_loop_and_keeps_its_hooks(toy: Inputs) -> None:
    assert toy.backbone is not None
    net = zoo()
    net[2].register_forward_hook(lambda module, args, out: out * 1.5)
    facts = toy.backbone.facts.model_copy(update={"feature_dim": 6})
    inputs = replace(toy, backbone=Backbone(facts, net))
    setting = spec(k_shot=2, head={"epochs": 8})
    assert count_affine(net) == 10 * 12 - 2 * 6 + 2 * 96 + 6 * 2 + 6 + 6 + 2 * 6 + 2 * 96
    scores = ours(inputs, setting, range(2))
    for i in range(2):
        assert largest(scores[i], plain(inputs, setting, i)) <= 1e-6


@pytest.mark.parametrize(("name", "count"), [("resnet50", 53_120), ("resnet18", 9_600)])
def test_counts_of_the_source(name: str, count: int) -> None:
    with torch.device("meta"):
        assert count_affine(timm.create_model(name)) == count
    backbone = backbones.load_backbone("timm/test_resnet", random_init=0)
    assert backbone.facts.n_affine == count_affine(backbone.module)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("bn_mode", ["eval", "train"])
def test_nothing_of_the_backbone_changes(toy: Inputs, bn_mode: str) -> None:
    assert toy.backbone is not None
    module = toy.backbone.module
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    black = torch.zeros(3, 3, SIDE, SIDE)
    features = toy.backbone.features(black)
    evaluate_block(toy, spec(bn_mode=bn_mode, dtype="float32", head={"epochs": 2}), 0)
    assert weights_hash(module.state_dict()) == weights_hash(before)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert torch.equal(toy.backbone.features(black), features)
    assert not any(p.requires_grad for p in module.parameters())
    assert not any(m.training for m in module.modules())


@pytest.mark.usefixtures("small_blocks")
def test_a_block_is_its_episodes_scored_one_by_one(toy: Inputs) -> None:
    setting = spec(head={"epochs": 4})
    block, size = evaluate_block(toy, setting, 1), block_size(setting, 64)
    assert block.index.tolist() == list(range(size, 2 * size))
    for row in (0, size - 1):
        right = plain(toy, setting, size + row).argmax(1).view(5, 3) == torch.arange(5)[:, None]
        np.testing.assert_array_equal(block.correct[row], right.numpy())


@pytest.mark.usefixtures("small_blocks")
def test_a_thread_a_piece_changes_no_bit(toy: Inputs) -> None:
    setting = spec(dtype="float32", head={"epochs": 3})
    one = evaluate_block(toy, setting, 0)
    torch.set_num_threads(2)
    two = evaluate_block(toy, setting, 0)
    assert torch.get_num_threads() == 2
    np.testing.assert_array_equal(one.correct, two.correct)


def test_a_diverged_episode_counts_and_leaves_the_others_alone(toy: Inputs) -> None:
    setting = spec(dtype="float32", head={"epochs": 3})
    sampler = EpisodeSampler(setting.episode, toy.dataset.name, toy.dataset.class_counts)
    episodes = [sampler.episode(i) for i in range(3)]
    tuning = build_tuning(toy, setting, range(3))
    support, query = read_episode_images(toy, setting.image, episodes)
    labels = torch.arange(5).repeat(3)
    with torch.no_grad():
        tuning.network.weight[1] = 1e30
    for rows in iterate_batches(toy, setting, episodes):
        tuning.step(take_rows(support, rows), labels[rows], rows)
    records = make_episode_records(episodes, tuning.logits(query), 3)
    assert records.finite.tolist() == [True, False, True]
    assert records.collapsed[1]
    assert records.accuracy[1] == 0.2
    good = make_episode_records(episodes, ours(toy, setting, range(3)), 3)
    np.testing.assert_array_equal(records.correct[[0, 2]], good.correct[[0, 2]])


def test_sizes_are_functions_of_the_shapes() -> None:
    def sizes(side: int, batch: int = 4) -> list[int]:
        setting = spec(image={"input_size": side}, head={"batch_size": batch})
        return [block_size(setting, 512), *(piece_size(setting, "cpu", n) for n in range(4))]

    assert [sizes(s)[0] for s in (32, 48, 64, 84, 112, 224, 1024)] == [100, 50, 20, 10, 10, 4, 4]
    assert sizes(32) == [100, 100, 50, 25, 13]
    assert sizes(224) == [4, 4, 2, 2, 2]
    assert sizes(32, 100)[0] == 4
    assert all(600 % size == 100 % size == 0 for size in affine.BLOCKS)
    on_gpu = [spec(image={"input_size": side}) for side in (41, 42, 59, 60, 83, 84, 1024)]
    blocks = [block_size(setting, 512, "cuda:0") for setting in on_gpu]
    assert blocks == [600, 300, 300, 150, 150, 75, 75]
    assert [piece_size(on_gpu[-1], "cuda:0", n) for n in range(7)] == [75, 38, 19, 10, 5, 3, 2]


def test_blocks_of_a_gpu_give_the_outcomes_of_small_ones(toy: Inputs) -> None:
    """Computed on the CPU in float64, in passes of 75 and of 2 episodes."""
    setting = spec(head={"epochs": 1})
    whole, parts = ours(toy, setting, range(75)), ours(toy, setting, range(2))
    torch.testing.assert_close(whole[:2], parts, rtol=0, atol=1e-9 * float(whole.abs().max()))


def test_what_cannot_be_tuned_is_refused(toy: Inputs) -> None:
    assert toy.backbone is not None
    facts = toy.backbone.facts
    bare = replace(toy, backbone=Backbone(facts, nn.Flatten()))
    with pytest.raises(UsageError, match="no normalization layer"):
        evaluate_block(bare, spec(), 0)
    low = facts.model_copy(update={"feature_spec": FeatureSpec(dtype="bf16")})
    with pytest.raises(UsageError, match="--dtype bf16 with affine tuning"):
        evaluate_block(replace(toy, backbone=replace(toy.backbone, facts=low)), spec(), 0)
    with pytest.raises(UsageError, match="no normalization layer"):
        affine.block_seconds(Backbone(facts, nn.Flatten()), spec(), "cpu")


PRECISIONS = [torch.float32, pytest.param(torch.bfloat16, marks=needs_bfloat16)]


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("side", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    "geometry",
    [(3, 1, 1), (3, 2, 1), (1, 1, 0), (1, 2, 0), (1, 2, 1), (7, 2, 3), (2, 2, 1), (3, 1, 2, 2)],
    ids=str,
)
@pytest.mark.parametrize("channels", [(24, 40), (5, 8)], ids=str)
def test_frozen_convolutions_equal_those_of_torch(
    channels: tuple[int, int],
    geometry: tuple[int, ...],
    side: int,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Output, changed in place, and gradient: for the images of the packed kernel, fewer, more."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    kernel, stride, padding, dilation = (*geometry, 1)[:4]
    wide, shape = channels[0] > 8, (kernel, stride, padding, dilation)
    conv = nn.Conv2d(*channels, *shape, bias=wide).to(dtype).requires_grad_(False)
    frozen = FrozenConvolution(conv)
    for images_ in (4, 3, 9):
        x = torch.randn(images_, channels[0], side, side, dtype=dtype, requires_grad=True)
        right, mine = conv(x).mul_(2), frozen(x).mul_(2)
        gradient = torch.randn_like(right)
        (to_right,) = torch.autograd.grad(right, x, gradient)
        (to_mine,) = torch.autograd.grad(mine, x, gradient)
        bound = 1e-5 if dtype == torch.float32 else 0.05
        torch.testing.assert_close(mine, right, rtol=bound, atol=bound)
        torch.testing.assert_close(to_mine, to_right, rtol=bound, atol=bound)


@pytest.mark.parametrize(("geometry", "side", "parts"), read_cases("heads")["products"])
def test_small_maps_and_strides_become_products(
    geometry: tuple[int, int, int], side: int, parts: int
) -> None:
    """Parts: products of matrices that a convolution of this geometry consists of."""
    conv = nn.Conv2d(24, 40, *geometry).requires_grad_(False)
    packed = convolution.pack(conv, images_of(24, side))
    assert (len(packed.parts) if isinstance(packed, Products) else 0) == parts


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_the_mean_of_maps_is_that_of_torch_in_the_layout_of_the_maps(
    layout: torch.memory_format,
) -> None:
    x = images_of(6, 5).contiguous(memory_format=layout).requires_grad_()
    pool = nn.AdaptiveAvgPool2d(1)
    right, mine = pool(x), network.MeanOfMaps.apply(x)
    assert torch.equal(mine, right)
    gradient = torch.randn_like(right)
    (to_right,) = torch.autograd.grad(right, x, gradient)
    (to_mine,) = torch.autograd.grad(mine, x, gradient)
    assert torch.equal(to_mine, to_right)
    assert to_mine.is_contiguous(memory_format=layout)
    assert network.means_maps(pool)
    assert not network.means_maps(nn.AdaptiveAvgPool2d((1, 2)))


def test_rows_are_taken_in_their_layout() -> None:
    rows = torch.tensor([2, 0, 2])
    for stacked in (images_of(3, 5), torch.randn(4, 3, 5, 5), torch.randn(4, 3, 2)):
        taken = take_rows(stacked, rows)
        assert torch.equal(taken, stacked[rows])
        assert taken.stride() == stacked.stride()


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512",
    reason="columns are paired on processors with AVX-512 alone",
)
def test_columns_in_pairs_have_the_bits_of_single_ones() -> None:
    """The zeros of the kernel change no sum; wider layers, odd maps and strides are not paired."""
    x = images_of(8, 12)
    conv = nn.Conv2d(8, 6, 3, padding=1, bias=False).requires_grad_(False)
    paired = convolution.pack(conv, x)
    assert isinstance(paired, PairedColumns)
    single = PackedConvolution(conv, x, convolution.axes_of(conv, x))
    gradient = images_of(6, 12)
    assert torch.equal(paired.forward(x), single.forward(x))
    assert torch.equal(paired.backward(gradient), single.backward(gradient))
    others = [
        (nn.Conv2d(9, 6, 3, padding=1, bias=False), images_of(9, 12)),
        (nn.Conv2d(8, 6, 3, padding=1, bias=False), images_of(8, 11)),
        (nn.Conv2d(8, 6, 3, 2, padding=1, bias=False), x),
        (nn.Conv2d(8, 6, 3, padding=1), x),
    ]
    for layer, maps in others:
        assert isinstance(convolution.pack(layer.requires_grad_(False), maps), PackedConvolution)


def test_without_the_operators_convolutions_are_those_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conv = nn.Conv2d(2, 2, 3).requires_grad_(False)
    assert FrozenConvolution.replaces(conv)
    monkeypatch.setattr(convolution, "OPERATORS", ("operator_of_another_release",))
    assert not FrozenConvolution.replaces(conv)


class CountedConvolution(nn.Conv2d):
    """A convolution that counts its calls and those of its copies, by name."""

    calls: ClassVar[Counter[str]] = Counter()

    def __init__(self, name: str, *arguments: int) -> None:
        super().__init__(*arguments)
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        self.calls[self.name] += torch.is_grad_enabled()
        return super().forward(x)


class Stem(nn.Module):
    """A stem, a convolution that runs below and above the shared norm, one above it alone."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(CountedConvolution("stem", 3, 6, 4, 4), nn.ReLU(inplace=True))
        self.shared, self.norm = CountedConvolution("shared", 6, 6, 1), nn.BatchNorm2d(6)
        self.top = CountedConvolution("top", 6, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.shared(self.stem(x)).relu_())
        return self.norm(self.top(self.shared(x).relu_())).mean((2, 3))


@pytest.mark.parametrize("room", [2**28, 0])
def test_what_no_step_changes_is_computed_once(
    toy: Inputs, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """The five images of an episode are two steps an epoch; all are there after the second one."""
    assert toy.backbone is not None
    monkeypatch.setattr(network, "STORED_BYTES", room)
    module = Stem().eval().requires_grad_(False)
    facts = toy.backbone.facts.model_copy(update={"feature_dim": 6})
    inputs = replace(toy, backbone=Backbone(facts, module))
    setting = spec(head={"epochs": 5})
    CountedConvolution.calls.clear()
    scores = ours(inputs, setting, range(2))
    assert CountedConvolution.calls == {"stem": 4 if room else 10, "shared": 20, "top": 10}
    for i in range(2):
        assert largest(scores[i], plain(inputs, setting, i)) <= 1e-6


def test_bfloat16_is_a_spec_of_its_own(toy: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = spec(dtype="float32", head={"epochs": 3})
    low = spec(dtype="float32", head={"epochs": 3}, affine={"dtype": "bfloat16"})
    assert "bfloat16" not in setting.canonical()
    assert '"dtype":null' not in setting.canonical()
    assert low.digest() != setting.digest()
    assert (setting.variant, low.variant) == ((), ("bfloat16",))
    monkeypatch.setattr(affine, "has_bfloat16", lambda device: False)
    with pytest.raises(UsageError, match="cpu has no bfloat16 units"):
        evaluate_block(toy, low, 0)
    with pytest.raises(UsageError, match="cpu has no bfloat16 units"):
        affine.block_seconds(toy.backbone, low, "cpu")


def test_bfloat16_is_refused_before_work_where_onednn_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "has_bfloat16_kernels", lambda: False)
    low = spec(dtype="float32", affine={"dtype": "bfloat16"})
    files = [tmp_path / "knn.spec", tmp_path / "low.spec"]
    for file, chosen in zip(files, (KnnSpec(image=low.image), low), strict=True):
        file.write_text(chosen.canonical())
    folders = {"cache": tmp_path / "cache", "output": tmp_path / "results"}
    with pytest.raises(UsageError, match="cpu has no bfloat16 units"):
        evaluate("fsbench/toy_resnet", "toy_tiles", spec=files, random_init=0, **folders)
    assert not list(tmp_path.rglob("*.json"))
    assert not list(tmp_path.rglob("array.npy"))


@needs_bfloat16
@pytest.mark.parametrize("bn_mode", ["eval", "train"])
def test_bfloat16_stays_near_float32(toy: Inputs, bn_mode: str) -> None:
    """Parameters are trained in float32: updates smaller than a bfloat16 step are not lost."""
    settings = [
        spec(k_shot=2, dtype="float32", bn_mode=bn_mode, affine={"lr": 1e-4, "dtype": dtype})
        for dtype in (None, "bfloat16")
    ]
    full, low = (ours(toy, setting, range(3), steps=10) for setting in settings)
    assert low.dtype == torch.float32
    assert 0 < largest(low, full) <= 0.1
    tuning = build_tuning(toy, settings[1], range(2))
    before = tuning.network.weight.detach().clone()
    tuning.step(torch.randint(0, 256, (4, 3, SIDE, SIDE), dtype=torch.uint8), torch.arange(4))
    assert (tuning.network.weight != before).double().mean() > 0.5


def test_the_estimate_grows_with_the_steps(toy: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is one piece; 200 steps and 15 / 4 / 2 of scoring for 5w1s."""
    assert toy.backbone is not None
    monkeypatch.setattr(affine, "time_step", lambda *a: 0.5)
    for k_shot, steps in ((1, 200), (3, 400)):
        seconds = affine.block_seconds(toy.backbone, spec(k_shot), "cpu")
        assert seconds == pytest.approx(0.5 * (steps + 15 / 4 / 2))
