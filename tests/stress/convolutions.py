"""Every convolution of our networks, forward and backward, under an allocator that checks memory.

    python -m pytest -m slow tests/test_backbones/test_kernels.py

The networks are those of all recipes, and ours at the widths and sizes that tests use, each in the
layout that `memory_layout` decides. A convolution that writes past its memory
ends the process that computes it; a new one goes on after it.
"""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import nn

from fsbench.backbones.architectures.presets import CIFAR_RESNETS, PRESETS
from fsbench.backbones.kernels import memory_layout
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError
from pretrain.recipes.registry import load_recipe, recipe_names

CHECKER = "libc_malloc_debug.so.0"
LAYOUTS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}
WIDTHS, SIDES, IMAGES = (None, 2, 4, 6, 8, 16), (8, 16, 32, 64), 4


class Case(NamedTuple):
    """Arguments of nn.Conv2d, the shape of its input, and the layout of both."""

    arguments: tuple[Any, ...]
    shape: tuple[int, ...]
    layout: str

    def run(self) -> None:
        """Compute output and gradients eight times, and free all of it."""
        layout = LAYOUTS[self.layout]
        layer = nn.Conv2d(*self.arguments).to(memory_format=layout)  # type: ignore[call-overload]
        for _ in range(8):
            x = torch.ones(self.shape).contiguous(memory_format=layout).requires_grad_()
            torch.autograd.grad(layer(x).square().sum(), [x, *layer.parameters()])


def list_networks() -> Iterator[tuple[str, int | None, int]]:
    """Yield architecture, width and side (px) of the input."""
    for recipe in map(load_recipe, recipe_names()):
        yield recipe.architecture, recipe.width, recipe.input_size
    for name in (*sorted(PRESETS), *CIFAR_RESNETS):
        for side in {*SIDES, load_architecture(name).input_size}:
            yield from ((name, width, side) for width in WIDTHS)


def list_cases() -> list[Case]:
    """Return the different convolutions of all networks, found without memory for weights."""
    cases: dict[Case, None] = {}
    for name, width, side in dict.fromkeys(list_networks()):
        try:
            with torch.device("meta"):
                model = load_architecture(name).at(side).build(5, width).eval()
        except UsageError:  # too small a side
            continue
        decided = memory_layout(model)
        layout = next(text for text, value in LAYOUTS.items() if value is decided)

        def record(m: nn.Conv2d, inputs: tuple[torch.Tensor], layout: str = layout) -> None:
            geometry = (m.kernel_size, m.stride, m.padding, m.dilation, m.groups)
            arguments = (m.in_channels, m.out_channels, *geometry, m.bias is not None)
            cases[Case(arguments, tuple(inputs[0].shape), layout)] = None

        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                module.register_forward_pre_hook(record)
        model(torch.empty(IMAGES, 3, side, side, device="meta"))
    return list(cases)


def find_faults(chosen: list[Case], threads: int = 1) -> list[Case]:
    """Return the cases that do not end well on a processor without AVX-512."""
    variables = {"LD_PRELOAD": CHECKER, "MALLOC_CHECK_": "3", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    faults, start = [], 0
    while start < len(chosen):
        worker = subprocess.run(
            [sys.executable, "-m", "stress.convolutions", str(threads)],
            input=json.dumps(chosen[start:]),
            env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
        )
        if worker.returncode == 0:
            break
        if worker.returncode == 1:
            raise RuntimeError(worker.stderr)  # an error of Python, no fault of memory
        # Torn memory that is noticed as Python exits counts as a fault of the last case.
        ended = min(worker.stdout.count("\n"), len(chosen) - start - 1)
        faults.append(chosen[start + ended])
        start += ended + 1
    return faults


def has_checker() -> bool:
    """Return whether the checking allocator of glibc is installed."""
    try:
        ctypes.CDLL(CHECKER)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    for values in json.load(sys.stdin):
        Case(*values).run()
        print(flush=True)
