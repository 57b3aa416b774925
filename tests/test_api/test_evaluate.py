"""fsbench.evaluate and what it returns: on generated targets, through public names only."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from support.fakes import digests
from torch import nn

import fsbench
from fsbench.backbones.networks import load_architecture
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.records import EpisodeRecords
from fsbench.core.tasks import TaskId
from fsbench.results.entry import read_entry, write_entry

TASK = "toy_tiles:5w1s"
QUICK = {"input_size": 32, "episodes": 20, "progress": False}


def network() -> nn.Module:
    torch.manual_seed(0)
    return load_architecture("toy_resnet").build(0)


def backbone(name: str = "mine", module: nn.Module | None = None) -> fsbench.Backbone:
    return fsbench.Backbone.from_module(
        module or network(), name=name, input_size=32, mean="imagenet", std="imagenet"
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> fsbench.Results:
    """An in-memory module and random weights of a reference, on episodes and on a probe."""
    cache = tmp_path_factory.mktemp("cache")
    return fsbench.evaluate(
        [backbone(), "fsbench/toy_resnet"],
        [TASK, "toy_tiles:probe"],
        random_init=0,
        input_size="native",
        episodes=20,
        limit=20,
        cache=cache,
        progress=False,
    )


def outcomes_of(results: fsbench.Results) -> str:
    """Digest of the outcomes of the only result."""
    (digest,) = digests(*results.paths).values()
    return digest


def test_a_module_in_memory_equals_the_same_weights_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    save_file(network().state_dict(), file)
    stated = {"arch": "fsbench/toy_resnet", "mean": "imagenet", "std": "imagenet"}
    of_mine = fsbench.evaluate(backbone(), TASK, **QUICK)
    of_file = fsbench.evaluate(str(file), TASK, **stated, **QUICK)
    mine, theirs = of_mine[0].backbone, of_file[0].backbone
    assert (mine.weights_hash, mine.feature_dim) == (theirs.weights_hash, theirs.feature_dim)
    assert outcomes_of(of_mine) == outcomes_of(of_file)
    assert (mine.source, mine.ref) == ("module", "module:mine")


def test_a_module_in_memory_is_copied_and_frozen() -> None:
    net = network().train()
    made = backbone(module=net)
    assert net.training
    assert all(p.requires_grad for p in net.parameters())
    assert not made.module.training
    assert not any(p.requires_grad for p in made.module.parameters())


@pytest.mark.parametrize("name", ["", "../up", "<b>net", "-x"])
def test_the_name_of_a_module_is_that_of_a_folder(name: str) -> None:
    with pytest.raises(UsageError, match="model name"):
        backbone(name)


def test_features_of_equal_weights_in_other_code_are_not_mixed(tmp_path: Path) -> None:
    """The forward pass is no part of the weights hash; cached features must tell it apart."""

    class Scaled(nn.Module):
        def __init__(self, power: int) -> None:
            super().__init__()
            self.net, self.power = network(), power

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.net(images) ** self.power

    made = [backbone(module=Scaled(power)) for power in (1, 3)]
    results = [fsbench.evaluate(one, TASK, cache=tmp_path, **QUICK) for one in made]
    assert outcomes_of(results[0]) != outcomes_of(results[1])


def test_results_are_a_sequence_and_a_frame(both: fsbench.Results) -> None:
    assert len(both) == 4
    assert [str(result.task) for result in both[:2]] == [f"{TASK}/linear@ibm", "toy_tiles:probe"]
    frame = both.to_frame()
    columns = {name: frame[name].tolist() for name in frame}
    assert columns["model"] == ["mine"] * 2 + ["fsbench-toy_resnet-random0"] * 2
    assert columns["source"] == ["module"] * 2 + ["fsbench"] * 2
    assert columns["head"] == ["linear", "probe"] * 2
    assert columns["accuracy"] == [result.score.mean for result in both]
    assert (columns["episodes"][0], columns["flags"][0]) == (20, "limited")
    assert frame["n_way"].isna().tolist() == [False, True, False, True]
    assert frame["images"].notna().tolist() == [False, True, False, True]
    text, page = repr(both), both._repr_html_()
    assert text.startswith("results ibm 32px: linear@ibm")
    assert all(part in text for part in (TASK, "fsbench-toy_resnet-random0"))
    assert "mine" in page
    assert "<script" not in page


def test_results_are_saved_and_loaded(both: fsbench.Results, tmp_path: Path) -> None:
    saved = both.save(tmp_path / "kept")
    assert saved.paths[0].is_relative_to(tmp_path / "kept")
    again = fsbench.load_results(tmp_path / "kept")
    assert digests(tmp_path / "kept") == digests(*both.paths)
    assert sorted(again.models) == sorted(both.models)
    both.save(tmp_path / "kept")  # the same files once more
    changed = [
        (x.result, replace(x.records, correct=~x.records.correct, predicted=None))
        for x in read_entry(saved.paths[0]).loaded
        if isinstance(x.records, EpisodeRecords)
    ]
    write_entry(saved.paths[0], changed)
    with pytest.raises(ValidationFailed, match="exists with other outcomes"):
        both.save(tmp_path / "kept")


def test_tasks_may_be_objects_and_models_need_their_own_names() -> None:
    task = TaskId("toy_tiles", 5, 1, "centroid", "ibm")
    (result,) = fsbench.evaluate(backbone(), task, **QUICK)
    assert str(result.task) == "toy_tiles:5w1s/centroid@ibm"
    with pytest.raises(UsageError, match="two models are called module:mine"):
        fsbench.evaluate([backbone(), backbone()], TASK)
    with pytest.raises(UsageError, match="for 2 models"):
        fsbench.evaluate([backbone("a"), backbone("b")], TASK, name="both")


@pytest.mark.parametrize(
    ("task", "settings"), [(TASK, []), ("toy_tiles:probe", ["probe.schedule=cosine"])], ids=str
)
def test_an_estimate_before_work_changes_no_record_and_a_refusal_starts_none(
    task: str, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(folder: str, yes: bool = True) -> str:
        places = {"cache": tmp_path / folder, "output": tmp_path / f"{folder}-results", "yes": yes}
        small = {"input_size": 16, "limit": 2, "batch_size": 16, "progress": False}
        return outcomes_of(fsbench.evaluate(backbone(), task, set=settings, **small, **places))

    plain = run("plain")
    monkeypatch.setattr("fsbench.api.evaluate.WORTH_TIMING", 1)
    monkeypatch.setattr("fsbench.core.progress.HOUR", 0.0)
    with pytest.raises(UsageError, match=r"features of \d+ images: about"):
        run("timed", yes=False)
    assert not list(tmp_path.glob("timed-results/**/*.zst"))
    assert not (tmp_path / "timed" / "features").exists()
    assert run("timed") == plain


def test_an_image_is_timed_as_it_is_extracted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks, layout and kernels."""
    timed, calls = backbone(module=nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten())), []

    def record(module: nn.Module, inputs: tuple[torch.Tensor]) -> None:
        (x,) = inputs
        is_channels_last = x.is_contiguous(memory_format=torch.channels_last)
        calls.append((len(x), is_channels_last, torch.backends.cudnn.deterministic))

    monkeypatch.setattr("fsbench.api.evaluate.WORTH_TIMING", 1)
    monkeypatch.setattr("fsbench.core.progress.HOUR", 0.0)
    timed.module.register_forward_pre_hook(record)
    with pytest.raises(UsageError, match=r"features of \d+ images: about"):
        fsbench.evaluate(timed, TASK, **QUICK, batch_size=16, cache=tmp_path)
    assert calls == [(16, True, True)] * 3
