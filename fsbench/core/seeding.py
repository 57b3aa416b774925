"""Random numbers: seeds are derived from names, streams are passed, nothing global is touched.

`uniforms` and `permutations` read the raw words of a counter-based generator (Philox), which NumPy
promises never to change. `stream` is for library code that only knows torch's global generator: it
forks its state, seeds the fork and puts the old state back.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Name = str | int


def seed_for(*names: Name) -> int:
    """Return a seed in [0, 2**63) that depends on every name and on their order."""
    text = "\x1f".join(f"{type(name).__name__}:{name}" for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def words(n: int, *names: Name) -> NDArray[np.uint64]:
    """Return n raw 64-bit words of the Philox stream called `names`, shape (n,)."""
    return np.asarray(np.random.Philox(key=seed_for(*names)).random_raw(n), dtype=np.uint64)


def uniforms(shape: tuple[int, ...], *names: Name, below: float = 1.0) -> NDArray[np.float64]:
    """Draw uniform numbers in [0, below) with 53 random bits, of this shape."""
    high = words(int(np.prod(shape)), *names)
    high >>= np.uint64(11)
    drawn = high.view(np.int64).astype(np.float64)  # faster than from unsigned numbers
    drawn *= below * 2.0**-53
    return drawn.reshape(shape)


def permutations(rows: int, n: int, *names: Name) -> NDArray[np.int64]:
    """Draw uniform permutations of 0..n-1, shape (rows, n): the order of random keys."""
    return np.argsort(words(rows * n, *names).reshape(rows, n), axis=1, kind="stable")


def numpy_generator(*names: Name) -> np.random.Generator:
    """Return NumPy's default generator, whose draws may change by version: for resampling only."""
    return np.random.default_rng(seed_for(*names))


def torch_generator(*names: Name) -> "torch.Generator":
    """Return a new torch generator, seeded by `names`."""
    import torch

    return torch.Generator().manual_seed(seed_for(*names))


@contextmanager
def stream(*names: Name, device: str = "cpu") -> Iterator[None]:
    """Run torch's generators of CPU and device on the stream `names`; restore them after it."""
    import torch

    seed, gpus = seed_for(*names), [torch.device(device)] if device.startswith("cuda") else []
    with torch.random.fork_rng(devices=gpus):
        # torch.manual_seed seeds every GPU, and takes longer than a small step
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        if device == "mps":
            torch.mps.manual_seed(seed)
        yield
