"""MNIST: handwritten digits, the smallest source of the soft-weight-rescaling experiments."""

import gzip
import shutil
from pathlib import Path

from fsbench.data.cards import read_card
from fsbench.data.sources._listings import torchvision_source

FACTS = read_card("mnist")
load = torchvision_source(FACTS, "MNIST", "MNIST")


def arrange(folder: Path) -> None:
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for packed in sorted(folder.glob("*-ubyte.gz")):
        with gzip.open(packed) as source, (raw / packed.stem).open("wb") as target:
            shutil.copyfileobj(source, target)
        packed.unlink()
