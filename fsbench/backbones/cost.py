"""Cost of features: multiply-adds, which are counted, and speed and memory, which are measured."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fsbench.backbones.base import Backbone, fixed_images
from fsbench.core import process
from fsbench.core.schema import FeatureCost, make_printable
from fsbench.core.seeding import stream


def describe_cost(backbone: Backbone, input_size: int, speed: float, device: str) -> FeatureCost:
    """Return the cost of features that were extracted at `speed` images per second just now."""
    return FeatureCost(
        macs=count_macs(backbone, input_size, device),
        images_per_second=float(f"{speed:.3g}"),
        peak_memory_bytes=process.peak_memory(device),
        machine=make_printable(process.machine_name(device)),
    )


def count_macs(backbone: Backbone, input_size: int, device: str) -> int | None:
    """Return the multiply-adds of the features of one image of side `input_size` (px).

    Matrix products and convolutions count. None for a network whose operations torch cannot count.
    """
    images, attention = fixed_images(input_size).to(device), torch.backends.mha
    is_fused = attention.get_fastpath_enabled()
    attention.set_fastpath_enabled(False)  # fused kernels of attention have no formula
    counter = FlopCounterMode(display=False)
    try:
        with torch.no_grad(), stream("macs", device=device), sdpa_kernel(SDPBackend.MATH), counter:
            backbone.module(images)
    except RuntimeError:
        return None
    finally:
        attention.set_fastpath_enabled(is_fused)
    return counter.get_total_flops() // (2 * len(images))
