"""Access to the Hugging Face hub: quick failure without network, and commits of revisions."""

import logging
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from fsbench.backbones.checkpoint import only_tensors
from fsbench.core.errors import CheckpointError

PATIENCE = 3.0
"""Seconds to wait for a connection before a host counts as unreachable."""
COMMIT = re.compile(r"[0-9a-f]{40}")


@contextmanager
def hub_access(name: str) -> Iterator[None]:
    """Restrict files to tensors inside, and use the cache alone if the hub cannot be reached.

    The client of the hub would try for minutes. Libraries do not log inside: they call weights
    random that are read from a file later. Raises CheckpointError for weights that are neither
    cached nor reachable.
    """
    from huggingface_hub import constants

    before, disabled = constants.HF_HUB_OFFLINE, logging.root.manager.disable
    constants.HF_HUB_OFFLINE = before or not is_reachable(constants.ENDPOINT)
    logging.disable(logging.ERROR)
    try:
        with only_tensors():
            yield
    except OSError as error:
        raise unreachable_error(name, error) from error
    finally:
        constants.HF_HUB_OFFLINE = before
        logging.disable(disabled)


def is_reachable(url: str) -> bool:
    """Return whether the host of a URL accepts connections; True where a proxy is between."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        return True
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))
    answers: list[bool] = []

    def connect() -> None:
        try:
            socket.create_connection(address, timeout=PATIENCE).close()
        except OSError:
            return
        answers.append(True)

    # A thread, because the time to look up a name has no limit of its own.
    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(PATIENCE)
    return bool(answers)


def commit_of(repository: str) -> str | None:
    """Return the commit that ORG/NAME[@REV] has in the cache, where it is known."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    repository, _, revision = repository.partition("@")
    if COMMIT.fullmatch(revision):
        return revision
    folder = repo_folder_name(repo_id=repository, repo_type="model")
    path = Path(constants.HF_HUB_CACHE, folder, "refs", *(revision or "main").split("/"))
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def unreachable_error(name: str, error: Exception) -> CheckpointError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return CheckpointError(
        f"cannot get the weights of {name}: {reason[:300]}",
        fix="without network: fill the Hugging Face cache on a machine that has it, copy it here "
        "(HF_HOME) and set HF_HUB_OFFLINE=1, or download the file and pass FILE@ARCH; else check "
        "the name and revision; or pass --random-init SEED for random weights",
    )
