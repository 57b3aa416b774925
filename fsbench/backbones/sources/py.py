"""Networks returned by a function of the user: py:PKG.MOD:FUNCTION?depth=20&name=value.

Arguments are int, float, bool or text, and part of the reference that results record.
The network maps normalised images (B, 3, H, W) to features (B, D). Its attributes `input_size`,
`mean` and `std` state how it was trained; the user states what it has not. These references are
accepted from the command line only: a file from others must never name code to run.
"""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from torch import nn

from fsbench.backbones.preprocessing import NEEDED, Preprocessing, parse_statistics
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork
from fsbench.core.errors import UnknownName, UsageError

FORM = "py:PKG.MOD:FUNCTION"
PREFIX = "py:"


def check(request: BackboneRequest) -> None:
    """Raise UsageError if the reference names no function."""
    if request.random_init is not None:
        raise UsageError(
            f"{request.ref} makes its own weights: --random-init has no meaning for it",
            fix="write a second function that leaves the weights random",
        )
    with working_folder():
        import_function(request.split()[0])


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a network. Raise UsageError if the name is no function or gives no network."""
    name, arguments = request.split()
    with working_folder():
        module, function = import_function(name)
        make = getattr(module, function)
        try:
            inspect.signature(make).bind(**arguments)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{request.ref}: {error}", fix=f"{function} takes {inspect.signature(make)}"
            ) from error
        network = make(**arguments)
    if not isinstance(network, nn.Module):
        raise UsageError(
            f"{request.ref} gave a {type(network).__name__}", fix="return a torch.nn.Module"
        )
    source = hashlib.sha256(inspect.getsource(module).encode()).hexdigest()[:12]
    return LoadedNetwork(
        module=network,
        architecture=request.ref,
        features=f"as the function's network gives them (source {source})",
        preprocessing=stated_attributes(network, request.ref),
        hint="; or set the attributes input_size, mean and std of the network",
    )


def stated_attributes(network: nn.Module, ref: str) -> Preprocessing:
    """Return input_size, mean and std of the network, where it has them. Raise UsageError."""
    size, mean, std = (getattr(network, name, None) for name in NEEDED)
    try:
        return Preprocessing.stated(
            "attributes of the network",
            input_size=None if size is None else int(size),
            mean=parse_statistics(mean, "mean"),
            std=parse_statistics(std, "std"),
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"{ref}: input_size {size!r}", fix="give pixels as an int") from error


def import_function(name: str) -> tuple[ModuleType, str]:
    """Import the module of `PKG.MOD:FUNCTION`; return it and the name. Raise UsageError."""
    path, _, function = name.partition(":")
    try:
        module = importlib.import_module(path)
    except (ImportError, ValueError) as error:
        raise UsageError(
            f"cannot import '{path}': {error}",
            fix="write py:PKG.MOD:FUNCTION, importable from the working folder",
        ) from error
    if not callable(getattr(module, function, None)):
        public = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise UnknownName(f"function of {path}", function, public)
    return module, function


@contextmanager
def working_folder() -> Iterator[None]:
    """Make modules of the working folder importable inside, as with `python -m`."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
