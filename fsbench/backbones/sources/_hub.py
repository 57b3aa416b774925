"""Weights that other libraries fetch: quickly or not at all, as tensors alone, with our errors."""

import logging
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from fsbench.backbones.checkpoint import BROKEN
from fsbench.backbones.sources import BackboneRequest
from fsbench.core.errors import CheckpointError, UsageError

HUB_CACHE = (
    "Hugging Face cache on a machine that has it, copy it here (HF_HOME) and set HF_HUB_OFFLINE=1"
)
PATIENCE = 3.0
"""Seconds to wait for the hub."""
FORCED = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""Environment variable that overrides the argument of torch.load."""


@contextmanager
def library_access(request: BackboneRequest, cache: str = HUB_CACHE) -> Iterator[None]:
    """Let a library build the network of a request inside, from files that hold tensors alone.

    The cache of the hub is used alone if the hub cannot be reached: its client would try for
    minutes. Libraries do not log inside: they call weights random that are read from a file later.
    cache: what a user without network can fill. Raises UsageError for arguments that the network
    does not take, CheckpointError for weights that cannot be reached or do not fit.
    """
    from huggingface_hub import constants

    before, disabled = constants.HF_HUB_OFFLINE, logging.root.manager.disable
    forced = {FORCED: os.environ[FORCED]} if FORCED in os.environ else {}
    if cache == HUB_CACHE and (request.random_init is None or ":" in request.ref):
        constants.HF_HUB_OFFLINE = before or not is_reachable(constants.ENDPOINT)
    os.environ[FORCED] = "1"
    logging.disable(logging.ERROR)
    try:
        yield
    except TypeError as error:
        if "?" not in request.name:
            raise
        fix = "leave out what the network does not take"
        raise UsageError(f"{request.ref}: {error}", fix=fix) from error
    except (*BROKEN, ImportError) as error:
        reason = " ".join(str(error).split())[:500] or type(error).__name__
        control = "; or pass --random-init SEED for random weights"
        if isinstance(error, OSError) or "ailed to download" in reason:
            raise CheckpointError(
                f"cannot get the weights of {request.ref}: {reason}",
                fix=f"without network: fill the {cache}, or download the file and pass FILE@ARCH; "
                f"else check the name and revision{control}",
            ) from error
        fix = "choose weights that exist and that the installed library reads"
        if "weights_only" in str(error):  # torch proposes to run the file
            reason = "its file holds objects beside its tensors"
            fix = "download it and pass FILE@ARCH, which reads the tensors alone"
        raise CheckpointError(f"{request.ref}: {reason}", fix=fix + control) from error
    finally:
        constants.HF_HUB_OFFLINE = before
        logging.disable(disabled)
        del os.environ[FORCED]
        os.environ.update(forced)


def is_reachable(url: str) -> bool:
    """Return whether a host accepts connections; True where a proxy is between."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        return True
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))
    answers: list[bool] = []

    def connect() -> None:
        with suppress(OSError), socket.create_connection(address, timeout=PATIENCE):
            answers.append(True)

    attempt = threading.Thread(target=connect, daemon=True)  # to look up a name has no time limit
    attempt.start()
    attempt.join(PATIENCE)
    return bool(answers)


def check_repository(request: BackboneRequest) -> None:
    """Raise UsageError for a malformed id of the hub."""
    if not re.fullmatch(r"[^/@?]+/[^/@?]+(@[^?]+)?(\?.*)?", request.name):
        raise UsageError(
            f"'{request.ref}' names no hub repository",
            fix=f"write {request.renamed('ORG/NAME@REVISION').ref}",
        )


def commit_of(repository: str) -> str | None:
    """Return the commit that ORG/NAME[@REV] has in the cache, where it is known."""
    from huggingface_hub import snapshot_download

    name, _, revision = repository.partition("@")
    with suppress(OSError):  # it is not in the cache
        return Path(snapshot_download(name, revision=revision or None, local_files_only=True)).name
    return None
