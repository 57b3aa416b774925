"""Affine tuning on too little memory: halves by a rule that the result states, never a mix."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
import pytest
import torch
from support.affine import spec, toy_inputs
from support.cli import call
from support.fakes import digests
from support.reading import read

from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Result
from fsbench.results.provenance import environment_of
from protocols.affine.tuning import AffineTuning
from protocols.episodic import affine
from protocols.heads.execution import retry_with_halvings

TASK = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "16", "--threads", "1")
TASK += ("-t", "toy_scan:5w1s/affine", "--workers", "0")


def call_episodic(folder: Path, *options: object) -> int:
    return call("episodic", *TASK, *options, "--cache", folder.parent / "cache", "-o", folder)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of eight episodes, a few steps each."""
    monkeypatch.setattr(affine, "BLOCKS", (8,))
    monkeypatch.setattr(affine, "GPU_BLOCKS", (8,))
    real = affine.iterate_batches
    monkeypatch.setattr(affine, "iterate_batches", lambda *args: list(real(*args))[:4])


def evaluated(folder: Path, episodes: int = 16, device: str = "cpu") -> Result:
    assert call_episodic(folder, "--episodes", episodes, "--device", device) == 0
    (result,) = read(folder)
    return result


def limited(monkeypatch: pytest.MonkeyPatch, fits: int, after: int) -> list[int]:
    """Memory for so many episodes; the first networks still have room. Returns sizes asked for.

    An attempt starts when the weights of those that failed are gone.
    """
    real, sizes, too_large = AffineTuning.__init__, list[int](), list[ReferenceType[torch.Tensor]]()

    def build(self: AffineTuning, backbone: Any, spec: Any, start: Any) -> None:
        assert all(weight() is None for weight in too_large)
        sizes.append(len(start.weight))
        real(self, backbone, spec, start)
        if sizes[-1] > fits and len(sizes) > after:
            too_large.extend(map(ref, self.network.module.parameters()))
            if self.weight.is_cuda:
                torch.empty(2**50, device=self.weight.device)  # asks for more than there is
            raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(AffineTuning, "__init__", build)
    return sizes


@pytest.mark.parametrize("after", [0, 2])
def test_a_task_is_computed_in_halves_and_says_so(
    after: int,
    device: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """after 2: memory runs out in the second block, when the first was written whole."""
    with monkeypatch.context() as patch:
        sizes = limited(patch, 4, after)
        result = evaluated(tmp_path / "small", device=device)
    assert "8 episodes of 16 px do not fit" in capfd.readouterr().err
    assert sizes[-4:] == [4] * 4, "both blocks in pieces of four"
    assert result.provenance.halvings == 1
    assert environment_of(result.provenance)["halvings"] == "1"
    monkeypatch.setattr(affine, "piece_size", lambda spec, device, halvings=0: 4)
    original = evaluated(tmp_path / "asked", device=device)
    assert original.provenance.halvings == 0
    assert "halvings" not in original.model_dump(mode="json")["provenance"]
    assert digests(tmp_path / "small") == digests(tmp_path / "asked")


def test_a_block_of_a_gpu_is_halved_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device "cpu:0" has the rules of a GPU; the outcomes are those of the blocks of a CPU."""
    inputs, setting = toy_inputs(), spec()
    small = [affine.evaluate_block(inputs, setting, block) for block in (0, 1)]
    monkeypatch.setattr(affine, "GPU_BLOCKS", (16,))
    sizes = limited(monkeypatch, 4, 0)

    def attempt(halvings: int) -> EpisodeRecords:
        on_gpu = replace(inputs, device="cpu:0", halvings=halvings)
        return affine.evaluate_block(on_gpu, setting, 0)

    records = retry_with_halvings(attempt, lambda text: None)
    assert sizes == [16, 8, 4, 4, 4, 4]
    assert records.index.tolist() == list(range(16))
    np.testing.assert_array_equal(records.correct, np.concatenate([r.correct for r in small]))


def test_a_halved_result_grows_in_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        limited(patch, 4, 0)
        evaluated(tmp_path / "r", 8)
    sizes = limited(monkeypatch, 8, 0)
    grown = evaluated(tmp_path / "r")
    assert (grown.provenance.halvings, grown.score.n) == (1, 16)
    assert sizes[-2:] == [4] * 2


def test_where_not_even_two_fit_the_fix_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    limited(monkeypatch, 1, 0)
    assert call_episodic(tmp_path / "r", "--limit", 8) == 1
    said = capfd.readouterr().err
    assert "2 episodes of 16 px do not fit into the memory of cpu" in said
    assert "--input-size" in said
