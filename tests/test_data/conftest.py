"""Small image trees on disk, and cards with other facts."""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.downloads import Server, serve

from fsbench.data import DataRoots, TargetDataset, catalog, load_target
from fsbench.data.cards import Dataset


def picture(path: Path, side: int = 8, mode: str = "RGB") -> Path:
    """A small image whose pixels follow from its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = tuple(hashlib.sha256(path.name.encode()).digest()[:3])
    pixels = np.full((side, side, 3), colour, dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)
    return path


@pytest.fixture
def change_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Give data sets of the suite other facts."""

    def change(name: str, **changes: object) -> None:
        read, (path,) = catalog.read_card, catalog.CARDS.glob(f"*/{name}.yaml")
        facts = read(path).FACTS.model_copy(update=changes)
        changed = Dataset(facts, partial(read(path).load.func, facts))  # type: ignore[attr-defined]
        monkeypatch.setattr(catalog, "read_card", lambda p: changed if p == path else read(p))
        catalog.all_facts.cache_clear()

    yield change
    catalog.all_facts.cache_clear()


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., TargetDataset]:
    """Load a target below `data`."""
    return lambda name, *pool: load_target(name, DataRoots.parse([str(tmp_path / "data")]), *pool)


@pytest.fixture
def draw() -> Callable[..., Path]:
    return picture


@pytest.fixture
def chestx(tmp_path: Path) -> Path:
    """Two images of class 4, one of class 0, two to be filtered out."""
    rows = [
        ("00000002_000.png", "Mass"),
        ("00000001_000.png", "Mass"),
        ("00000003_000.png", "Atelectasis"),
        ("00000004_000.png", "No Finding"),
        ("00000005_000.png", "Mass|Nodule"),
    ]
    folder = tmp_path / "data" / "ChestX"
    for name, _ in rows:
        picture(folder / "images" / name, mode="L")
    lines = ["Finding Labels,Patient ID,Image Index", *(f"{label},1,{n}" for n, label in rows)]
    (folder / "Data_Entry_2017.csv").write_text("﻿" + "\n".join(lines) + "\n", encoding="utf8")
    return folder


@pytest.fixture
def isic(tmp_path: Path) -> Path:
    """Two images; the columns of the label file stand in another order than the official one."""
    folder = tmp_path / "data" / "isic2018"
    for name in ("ISIC_0000001", "ISIC_0000002"):
        picture(folder / "ISIC2018_Task3_Training_Input" / f"{name}.jpg")
    table = folder / "ISIC2018_Task3_Training_GroundTruth"
    table.mkdir()
    (table / f"{table.name}.csv").write_text(
        "AKIEC,BCC,image,BKL,DF,MEL,NV,VASC\n"
        "1.0,0.0,ISIC_0000001,0.0,0.0,0.0,0.0,0.0\n"
        "0.0,0.0,ISIC_0000002,0.0,0.0,1.0,0.0,0.0\n"
    )
    return folder


@pytest.fixture
def eurosat(tmp_path: Path) -> Path:
    """Two images of River, one of Forest."""
    folder = tmp_path / "data" / "EuroSAT"
    for name in ("River/River_2.jpg", "River/River_1.jpg", "Forest/Forest_9.jpg"):
        picture(folder / "2750" / name)
    return folder


@pytest.fixture
def server() -> Iterator[Server]:
    """Files by path on this machine."""
    with serve() as state:
        yield state
