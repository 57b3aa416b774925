"""A job that only writes files, imported by name in worker processes."""

import atexit
import os
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from fsbench.api.options import SweepOptions
from fsbench.core.errors import DataError, UsageError
from fsbench.sweep.file import JobKind
from fsbench.sweep.job import Job


class Fake(Job):
    """Writes its name and process into the output folder, after what `does` says."""

    KIND: ClassVar[JobKind] = "evaluate"
    name: str
    does: str = ""

    @property
    def title(self) -> str:
        return self.name

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def done(self, place: SweepOptions) -> bool:
        return (place.output / self.name).exists()

    def run(self, place: SweepOptions) -> None:
        place.output.mkdir(parents=True, exist_ok=True)
        tries = place.output / f"{self.name}.tries"
        with tries.open("a", encoding="utf8") as file:
            file.write(f"{os.getpid()} {place.device}\n")
        if self.does == "wrong":
            raise UsageError(f"{self.name} cannot be", fix="nothing")
        if self.does == "fail":
            raise DataError(f"{self.name} cannot be read", fix="nothing")
        if self.does == "crash":
            raise ZeroDivisionError(self.name)
        if self.does == "hang":
            time.sleep(600)
        if self.does == "tidy":
            atexit.register((place.output / f"{self.name}.tidied").touch)
        (place.output / self.name).write_text(str(os.getpid()), encoding="utf8")
