"""`fsbench cache` on a cache with features, an unfinished entry and a source."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import CommandLine

from fsbench import backbones
from fsbench.backbones.features import FeatureRequest, FeatureStore
from fsbench.core.specs import ImageSpec

SOURCE = Path("sources", "toy-32px", "train.npy")


@pytest.fixture
def cache(tmp_path: Path, pictures: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FSBENCH_CACHE", str(folder))
    backbone = backbones.load_backbone("fsbench/toy_resnet", random_init=0)
    request = FeatureRequest(backbone, pictures(4), ImageSpec(input_size=16), "0" * 64)
    FeatureStore(folder, 4).get(request)
    (folder / "features" / "abc.partial").mkdir()
    (folder / SOURCE).parent.mkdir(parents=True)
    (folder / SOURCE).write_bytes(b"x" * 2_000_000)
    (folder / "notes.txt").write_text("mine")
    return folder


def test_the_command_counts_entries_and_bytes(cache: Path, cli: CommandLine) -> None:
    rows = [line.split() for line in cli("cache").out.splitlines()]
    assert [row[-3:] for row in rows if row[:1] == ["sources"]] == [["1", "2.0", "MB"]]
    assert [row[-3] for row in rows if row[:1] == ["features"]] == ["2"]
    records = cli.json("cache")
    assert {"kind": "sources", "entries": 1, "bytes": 2_000_000} in records
    assert [row[-3] for row in rows if row[:1] == ["images"]] == ["1"]
    assert "at most 3 GB (--cache-size)" in cli("cache", "--cache-size", "3").out
    assert "0.0 MB" in cli("cache", "--cache", cache / "none").out
    cli("cache", "--clear")
    assert [path.name for path in cache.iterdir()] == ["notes.txt"]
