"""Two processes that train tiny recipes one after another as two ranks, in float64."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support.pretrain import SIDE, killed_at, source
from torch import Tensor, distributed

import pretrain.training.distributed
from fsbench.core.distributed import device_of_rank
from fsbench.data import SourceDataset, Split
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import InputNormalizer
from pretrain.training.checkpoint import write_tensors
from pretrain.training.loop import Trainer, train_recipe

RANKS = 2
DEVICES = {"gloo": "cpu", "nccl": "cuda:0"}
"""Device of the first rank by the backend of the ranks."""
TESTS = Path(__file__).parents[1]
NETWORK = ("architecture=cnn", "input_size=10")
"""A network without batch norm and dropout: there several ranks do what one process does."""


@cache
def images(recipe: Recipe) -> SourceDataset:
    """The tiny source at the side of the recipe, with a border."""
    more = (recipe.input_size - SIDE) // 2
    parts = {
        name: Split(
            np.pad(s.images, ((0, 0), (0, 0), (more, more), (more, more)), "edge"), s.labels
        )
        for name, s in (("train", source().train), ("val", source().val))
    }
    return replace(source(), **parts)


@dataclass(frozen=True)
class Job:
    """A recipe; kill_at: the step before which both ranks die once, and then resume."""

    recipe: Recipe
    kill_at: int | None = None


@contextmanager
def float64() -> Iterator[None]:
    """Runs inside compute in float64: what differs is then more than rounding."""
    single = InputNormalizer.__call__
    torch.set_default_dtype(torch.float64)
    InputNormalizer.__call__ = lambda self, images: single(self, images).double()  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        InputNormalizer.__call__ = single  # type: ignore[method-assign]


def alone(job: Job, out: Path, backend: str) -> Path:
    """The run of one process, on the device of the first rank."""
    with float64():
        return train_recipe(job.recipe, images(job.recipe), out, device=DEVICES[backend])


def together(jobs: Mapping[str, Job], out: Path, backend: str) -> None:
    """The runs of two ranks, in folders called as the jobs."""
    out.mkdir(parents=True, exist_ok=True)
    content = {
        n: {"recipe": j.recipe.model_dump(mode="json"), "kill_at": j.kill_at}
        for n, j in jobs.items()
    }
    (out / "jobs.json").write_text(json.dumps(content))
    torchrun("-m", "support.ranks", str(out), backend)


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Two processes under torchrun, which must end well."""
    command, environment = under_torchrun(*arguments)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def under_torchrun(*arguments: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    paths = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    return [*command, f"--nproc-per-node={RANKS}", *arguments], environment


def work(out: Path, backend: str) -> None:
    """One of the two processes."""
    torch.set_num_threads(1)
    pretrain.training.distributed.BUCKET_BYTES = 2**12  # several buckets
    device = str(device_of_rank(torch.device(DEVICES[backend])))
    distributed.init_process_group(backend)
    keep_own_weights(distributed.get_rank())
    with float64():
        for name, content in json.loads((out / "jobs.json").read_text()).items():
            job = Job(Recipe.model_validate(content["recipe"]), content["kill_at"])
            (out / name).mkdir(parents=True, exist_ok=True)
            if job.kill_at is not None:
                run = (job.kill_at, job.recipe, out / name)
                killed_at(*run, pytest.MonkeyPatch(), images(job.recipe), device)
                distributed.barrier()
            train_recipe(job.recipe, images(job.recipe), out / name, device=device)
    distributed.destroy_process_group()


def keep_own_weights(rank: int) -> None:
    """Every rank leaves its final weights, buffers included, in `rank-R.safetensors`."""
    finish = Trainer._finish

    def finishing(self: Trainer) -> None:
        finish(self)
        state = dict(self.ctx.model.state_dict())
        write_tensors(self.out / f"rank-{rank}.safetensors", state)

    Trainer._finish = finishing  # type: ignore[method-assign]


def of_rank(run: Path, rank: int) -> dict[str, Tensor]:
    """The final weights of a rank."""
    return load_file(run / f"rank-{rank}.safetensors")


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2])
