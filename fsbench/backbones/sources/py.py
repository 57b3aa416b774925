"""Networks returned by a function of the user: py:FILE:FUNCTION or py:PKG.MOD:FUNCTION.

Arguments follow as ?depth=20&name=value; they are int, float, bool or text, and part of the
reference that results record. They also record the sha-256 of FILE, or of the file of PKG.MOD. It
covers neither what that file imports nor files that the function reads; the weights have their own.
The network maps normalised images (B, 3, H, W) to features (B, D). Its attributes `input_size`,
`mean` and `std` state how it was trained; the user states what it has not. These references are
accepted from the command line only: a file from others must never name code to run.
"""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from fsbench.backbones.preprocessing import NEEDED, Preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.registry import load_custom_code

FORM = "py:FILE:FUNCTION"
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
        make, code = import_function(name)
        signature = inspect.signature(make)
        try:
            signature.bind(**arguments)
        except TypeError as error:
            fix = f"{make.__name__} takes {signature}"
            raise UsageError(f"{request.ref}: {error}", fix=fix) from error
        network = make(**arguments)
    if not isinstance(network, nn.Module):
        made = type(network).__name__
        raise UsageError(f"{request.ref} gave a {made}", fix="return a torch.nn.Module")
    stated = {field: getattr(network, field, None) for field in NEEDED}
    if not isinstance(size := stated["input_size"], int | None):
        raise UsageError(f"{request.ref}: input_size {size!r}", fix="give pixels as an int")
    return LoadedNetwork(
        module=network,
        architecture=request.ref,
        features=f"as the function's network gives them (source {code[:12]})",
        preprocessing=Preprocessing.stated("attributes of the network", **stated),
        more={"code": code},
        hint="; or set the attributes input_size, mean and std of the network",
    )


def import_function(name: str) -> tuple[Callable[..., Any], str]:
    """Return the function of `FILE:FUNCTION` or `PKG.MOD:FUNCTION`, and the sha-256 of its file.

    Raise UsageError, and FsbenchError for a file that fails.
    """
    path, _, function = name.partition(":")
    if path.endswith(".py"):
        custom = load_custom_code(f"{PREFIX}{name}")
        return custom.value, custom.digest
    try:
        module = importlib.import_module(path)
    except (ImportError, ValueError) as error:
        raise UsageError(
            f"cannot import '{path}': {error}",
            fix="write py:FILE:FUNCTION, or py:PKG.MOD:FUNCTION of a module that Python finds",
        ) from error
    public = {n: v for n, v in vars(module).items() if callable(v) and not n.startswith("_")}
    if function not in public:
        raise UnknownName(f"function of {path}", function, public)
    code = Path(module.__file__ or "").read_bytes()
    return public[function], hashlib.sha256(code).hexdigest()


@contextmanager
def working_folder() -> Iterator[None]:
    """Make modules of the working folder importable inside, as with `python -m`."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
