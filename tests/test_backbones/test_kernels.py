"""How torch computes: true float32, and a layout in which its kernels have no fault."""

import inspect
import json
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stress import convolutions
from support.pretrain import source, tiny
from torch import nn

from fsbench.backbones.features import compute_features
from fsbench.backbones.kernels import exact_float32, float32_precision, memory_layout
from fsbench.backbones.loading import load_backbone
from fsbench.core.progress import SILENT
from pretrain.training import loop
from protocols.affine.convolution import FrozenConvolution
from protocols.affine.network import EpisodeNetwork

BACKENDS = torch.backends
PARTS = ("cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
OPERATIONS: list[Any] = [attrgetter(name)(BACKENDS) for name in PARTS]
HOSTS = (
    "pass",
    "torch.set_float32_matmul_precision('medium')",
    "torch.backends.cuda.matmul.allow_tf32 = True",
    "torch.backends.cuda.matmul.fp32_precision = 'ieee'",
    "torch.backends.mkldnn.fp32_precision = 'bf16'",
    "torch.backends.fp32_precision = 'tf32'",
)
PROGRAM = """
for host in hosts:
    exec(host)
    before = state()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (result,) = fsbench.evaluate(
            "fsbench/toy_resnet", "toy_tiles:2w1s", random_init=0, episodes=20, threads=1,
            progress=False, cache=f"{sys.argv[1]}/{hosts.index(host)}",
        )
    means = [result.score.mean, result.dense.mean]
    print(json.dumps([before == state(), str(means), result.provenance.precision]))
"""


def state() -> list[Any]:
    """Everything that a program can read of its own choice."""
    names = [f"{name}.fp32_precision" for name in (*PARTS, "cudnn", "mkldnn")]
    names += ["fp32_precision", "cuda.matmul.allow_tf32", "cudnn.benchmark", "cudnn.deterministic"]
    values: list[Any] = []
    for name in names:
        try:
            values.append(attrgetter(name)(torch.backends))
        except RuntimeError:  # the old switches beside the new ones
            values.append("an error")
    return values


def test_the_choice_of_the_host_program_neither_acts_nor_changes(tmp_path: Path) -> None:
    start = "import json, sys\nfrom operator import attrgetter\nfrom typing import Any\n"
    start += "import torch\nimport fsbench\n"
    source = f"{start}hosts, PARTS = {HOSTS, PARTS}\n{inspect.getsource(state)}{PROGRAM}"
    program = [sys.executable, "-c", source, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(HOSTS)
    assert all(unchanged for unchanged, _, _ in results)
    assert len({digest for _, digest, _ in results}) == 1
    assert {precision for _, _, precision in results} == {"ieee"}


@pytest.mark.parametrize("value", ["none", "ieee", "tf32"])
def test_every_operation_is_exact_inside_and_follows_its_backend_afterwards(value: str) -> None:
    before = BACKENDS.fp32_precision
    try:
        BACKENDS.fp32_precision = value
        with exact_float32():
            assert {operation.fp32_precision for operation in OPERATIONS} == {"ieee"}
            assert BACKENDS.cudnn.deterministic
        BACKENDS.fp32_precision = "tf32"
        if value != "none":
            assert {operation.fp32_precision for operation in OPERATIONS} == {"tf32"}
    finally:
        BACKENDS.fp32_precision = before
        for operation in OPERATIONS:
            operation.fp32_precision = "none"
        BACKENDS.cudnn.conv.fp32_precision = "tf32"  # as a fresh process has it


def test_products_inside_are_those_of_float32(device: str) -> None:
    """Whatever the host program chose: TF32, or autocast."""
    a = torch.randn(256, 256, generator=torch.Generator().manual_seed(0)).to(device)
    exact = a.double() @ a.double()
    with float32_precision("tf32"):
        with exact_float32(device):
            inside = a @ a
        with torch.autocast(a.device.type, dtype=torch.bfloat16):
            rough = a @ a
            with exact_float32(device):
                inside_autocast = a @ a
    assert (rough - exact).abs().max() > 1e-2 > 1e-3 > (inside - exact).abs().max()
    assert torch.equal(inside, inside_autocast)


checked = pytest.mark.skipif(
    not convolutions.has_checker(), reason=f"{convolutions.CHECKER} of glibc is not installed"
)


def point(channels: int, stride: int | tuple[int, int] = 2) -> nn.Module:
    """Return a network with a 1x1 convolution of so many channels."""
    return nn.Sequential(nn.Conv2d(3, channels, 3), nn.Conv2d(channels, 2 * channels, 1, stride))


FAULTY = [point(channels, stride) for channels in range(2, 8) for stride in (2, 3, (1, 2))]
OTHERS = [point(8), point(4, 1), nn.Conv2d(4, 8, 3, 2), nn.Conv2d(4, 8, (1, 2), 2)]
OTHERS += [nn.Linear(4, 8), nn.Conv1d(4, 8, 1, 2)]


def test_only_strided_points_of_few_channels_are_contiguous() -> None:
    assert {memory_layout(model) for model in FAULTY} == {torch.contiguous_format}
    assert {memory_layout(model) for model in OTHERS} == {torch.channels_last}


def is_contiguous(module: nn.Module) -> bool:
    """Return whether all kernels lie contiguous in memory."""
    return all(w.is_contiguous() for w in module.parameters())


@pytest.mark.parametrize(("width", "contiguous"), [(4, True), (8, False)])
def test_runs_are_trained_and_loaded_in_the_layout_of_their_network(
    width: int, contiguous: bool, tmp_path: Path
) -> None:
    recipe = tiny("normal", f"width={width}", "plan.rounds=1", "plan.epochs=1")
    run = loop.Trainer(recipe, source(), tmp_path, torch.device("cpu"), SILENT)
    assert is_contiguous(run.ctx.model) == contiguous
    batch = run.ctx.loader.batch(run.ctx.clock)
    assert batch.images.is_contiguous() == contiguous
    run.run()
    assert run.validation.normalise(run.validation.images).is_contiguous() == contiguous
    backbone = load_backbone(f"run:{tmp_path}")
    assert is_contiguous(backbone.module)
    inputs: list[bool] = []
    backbone.module.register_forward_pre_hook(lambda _, x: inputs.append(x[0].is_contiguous()))
    compute_features(backbone, np.zeros((2, 3, 32, 32), np.uint8), "cpu")
    assert is_contiguous(backbone.module) == contiguous
    assert inputs == [contiguous]


def test_a_recipe_without_channels_last_stays_contiguous(tmp_path: Path) -> None:
    recipe = tiny("normal", "width=8", "channels_last=false")
    run = loop.Trainer(recipe, source(), tmp_path, torch.device("cpu"), SILENT)
    assert is_contiguous(run.ctx.model)
    assert run.ctx.loader.batch(run.ctx.clock).images.is_contiguous()


@pytest.mark.parametrize("channels", [4, 8])
def test_kernels_of_affine_tuning_are_packed_in_channels_last_alone(channels: int) -> None:
    model = nn.Sequential(point(channels), nn.BatchNorm2d(2 * channels))
    network = EpisodeNetwork(model.eval(), 1, "eval", torch.zeros(1))
    layers = [layer for layer in network.module.modules() if isinstance(layer, nn.Conv2d)]
    packed = {isinstance(layer.forward, FrozenConvolution) for layer in layers}
    assert packed == {channels == 8}


@checked
@pytest.mark.skipif(not torch.__version__.startswith("2.14."), reason="a fault of torch 2.14")
def test_the_search_finds_the_fault_in_channels_last() -> None:
    case = convolutions.Case((4, 8, 1, 2, 0, 1, 1, False), (4, 4, 8, 8), "channels_last")
    wide = convolutions.Case((8, 16, 1, 2, 0, 1, 1, False), (4, 8, 8, 8), "channels_last")
    chances = [case._replace(layout="contiguous"), wide, *3 * [case]]  # one may go unnoticed
    assert set(convolutions.find_faults(chances)) == {case}


@checked
@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_no_convolution_of_our_networks_writes_past_its_memory(threads: int) -> None:
    chosen = convolutions.list_cases()
    assert len(chosen) > 1000
    assert {case.layout for case in chosen} == set(convolutions.LAYOUTS)
    assert convolutions.find_faults(chosen, threads=threads) == []
