"""A job that only writes files, imported by name in worker processes."""

import atexit
import os
import time
from pathlib import Path
from typing import ClassVar

from fsbench.api.options import SweepOptions
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
        if self.does == "hang":
            time.sleep(600)
        if self.does == "tidy":
            atexit.register((options.output / f"{self.name}.tidied").touch)
        (options.output / self.name).write_text(str(os.getpid()), encoding="utf8")

    @staticmethod
    def show_gpu(folder: Path, count: int) -> str | None:
        """Return the GPU that this process sees, once so many processes are asked."""
        (folder / str(os.getpid())).touch()
        while len([*folder.iterdir()]) < count:
            time.sleep(0.02)
        return os.environ.get("CUDA_VISIBLE_DEVICES")
