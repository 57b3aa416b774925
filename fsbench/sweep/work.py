"""One job in a process of its own: what every engine runs."""

from __future__ import annotations

import os
import socket
import time
from typing import NamedTuple

from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.signals import Stopped, handled
from fsbench.sweep.job import Job
from fsbench.sweep.place import Place


class Outcome(NamedTuple):
    """How an attempt ended; reason: why it failed, empty where it did not; wrong: what was asked
    for makes no sense, so that another attempt would fail alike.
    """

    key: str
    reason: str = ""
    seconds: float | None = None
    host: str | None = None
    pid: int | None = None
    wrong: bool = False


def perform(job: Job, place: Place) -> Outcome:
    """Run the job on the threads of the place. A failure that names its reason is an outcome; a
    SIGTERM lets a training write its checkpoint, and then ends the process.
    """
    started, reason, wrong = time.monotonic(), "", False
    place.machine.start()
    try:
        with handled():
            job.run(place)
    except Stopped as stopped:
        os._exit(stopped.exit_code)
    except (FsbenchError, OSError) as error:
        reason, wrong = f"{type(error).__name__}: {error}", isinstance(error, UsageError)
    seconds = round(time.monotonic() - started, 3)
    return Outcome(job.key, reason, seconds, socket.gethostname(), os.getpid(), wrong)
