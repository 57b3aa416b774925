"""`fsbench cache ls|clear` on a cache with features, an unfinished entry and a source."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from support.cli import call
from typer.testing import CliRunner

from fsbench import backbones
from fsbench.backbones.features import FeatureRequest, FeatureStore
from fsbench.cli.main import build
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


def test_ls(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("cache", "ls") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[-3:] for row in rows if row[:1] == ["sources"]] == [["1", "2.0", "MB"]]
    assert [row[-3] for row in rows if row[:1] == ["features"]] == ["2"]
    assert call("cache", "ls", "--json") == 0
    records = json.loads(capsys.readouterr().out)
    assert {"kind": "sources", "entries": 1, "bytes": 2_000_000} in records
    assert call("cache", "ls", "--cache", str(cache / "none")) == 0
    assert "0.0 MB" in capsys.readouterr().out
    assert call("cache", "clear", "--cache", str(cache / "none")) == 0


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_clear_asks_and_keeps_what_is_not_a_cache(cache: Path, answer: str, code: int) -> None:
    result = CliRunner().invoke(build(), ["cache", "clear"], input=f"{answer}\n")
    assert result.exit_code == code
    assert "Delete 3 entries" in result.output
    assert (cache / SOURCE).exists() == (answer == "n")
    left = [path.relative_to(cache) for path in cache.rglob("*") if path.is_file()]
    assert left == [Path("notes.txt")] or answer == "n"


def test_clear_of_one_kind_spares_what_a_process_works_on(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FileLock(cache / "features" / "abc.lock"):
        assert call("cache", "clear", "--yes", "features") == 0
    assert "kept" in capsys.readouterr().err
    assert (cache / "features" / "abc.partial").is_dir()
    assert call("cache", "clear", "features", "--yes") == 0
    assert "cleared 1 entry" in capsys.readouterr().err
    assert (cache / SOURCE).exists()
    assert not list((cache / "features").iterdir())
    assert call("cache", "clear", "feature", "--yes") == 2
    assert "did you mean 'features'" in capsys.readouterr().err
