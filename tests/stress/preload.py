"""What a forked command finds loaded, so that a run takes a second and not ten."""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import pyarrow  # noqa: F401
import torch

import pretrain.training.loop  # noqa: F401
from fsbench.core import arrays

torch.set_num_threads(1)
arrays.MARK_SECONDS = 0.0  # a toy run is over before the first second
