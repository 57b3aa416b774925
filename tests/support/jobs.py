"""Work that other processes import by name, and an executor that runs none."""

import atexit
import os
import signal
import tempfile
from concurrent.futures import Executor, Future
from typing import Any, ClassVar

from fsbench.api.options import SweepOptions
from fsbench.claims.engine import ClaimJob
from fsbench.core.errors import DataError, UsageError
from fsbench.sweep.job import Job


class Fake(Job):
    """Writes its name and process into the output folder, after what `does` says."""

    KIND: ClassVar = "evaluate"
    name: str
    does: str = ""

    @property
    def title(self) -> str:
        return self.name

    def done(self, options: SweepOptions) -> bool:
        return (options.output / self.name).exists()

    def run(self, options: SweepOptions) -> None:
        options.output.mkdir(parents=True, exist_ok=True)
        with (options.output / f"{self.name}.tries").open("a", encoding="utf8") as file:
            file.write(f"{os.getpid()}\n")
        if self.does == "wrong":
            raise UsageError(f"{self.name} cannot be", fix="nothing")
        if self.does == "fail":
            raise DataError(f"{self.name} cannot be read", fix="nothing")
        if self.does == "crash":
            raise ZeroDivisionError(self.name)
        if self.does == "die" or (self.does == "die once" and self.tries(options) == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "tidy":
            atexit.register((options.output / f"{self.name}.tidied").touch)
        (options.output / self.name).write_text(str(os.getpid()), encoding="utf8")

    def tries(self, options: SweepOptions) -> int:
        return (options.output / f"{self.name}.tries").read_text().count("\n")

    @staticmethod
    def show_gpus(options: SweepOptions) -> str | None:
        """Return the GPUs that this process sees."""
        return os.environ.get("CUDA_VISIBLE_DEVICES")


class Script(Executor):
    """An executor that ends jobs at once, failing as told."""

    def __init__(self, failures: str = "") -> None:
        self.failures = failures
        self.started: list[str] = []
        self.closed = False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        job: Job = args[1]
        self.started.append(job.title)
        future: Future[str] = Future()
        future.set_result("it broke" if job.title in self.failures else "")
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True


def measure_seed(job: ClaimJob) -> dict[str, Any]:
    """Measure the seed of a claim, the process and its folder for temporary files."""
    return {"square": job.seed**2, "pid": os.getpid(), "folder": tempfile.gettempdir()}
