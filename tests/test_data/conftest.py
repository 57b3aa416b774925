"""Small image trees on disk, and cards with other facts."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from support.downloads import Server, serve
from support.images import draw_images

from fsbench.data import DataRoots, TargetDataset, catalog, load_target
from fsbench.data.cards import Dataset

FINDINGS = {2: "Mass", 1: "Mass", 3: "Atelectasis", 4: "No Finding", 5: "Mass|Nodule"}


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
def chestx(tmp_path: Path) -> Path:
    """Two images of class 4, one of class 0, two to be filtered out."""
    folder = tmp_path / "data" / "ChestX"
    draw_images(folder / "images", *(f"0000000{n}_000.png" for n in FINDINGS), mode="L")
    rows = [f"{label},1,0000000{n}_000.png" for n, label in FINDINGS.items()]
    lines = ["\ufeffFinding Labels,Patient ID,Image Index", *rows]
    (folder / "Data_Entry_2017.csv").write_text("\n".join(lines) + "\n", encoding="utf8")
    return folder


@pytest.fixture
def isic(tmp_path: Path) -> Path:
    """Two images; the columns of the label file stand in another order than the official one."""
    folder = tmp_path / "data" / "isic2018"
    names = ("ISIC_0000001.jpg", "ISIC_0000002.jpg")
    draw_images(folder / "ISIC2018_Task3_Training_Input", *names)
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
    names = ("River/River_2.jpg", "River/River_1.jpg", "Forest/Forest_9.jpg")
    draw_images(tmp_path / "data" / "EuroSAT" / "2750", *names)
    return tmp_path / "data" / "EuroSAT"


@pytest.fixture
def server() -> Iterator[Server]:
    """Files by path on this machine."""
    with serve() as state:
        yield state
