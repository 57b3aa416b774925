"""Exports through the command line: the hub's files, and folders that timm loads."""

import json
import re
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import timm
import torch
import yaml
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from support import fakes
from support.cli import CommandLine
from support.pretrain import RUN_RECORD
from support.reading import read
from timm.data import create_transform, resolve_model_data_config
from torch import Tensor, nn

from fsbench.backbones.architectures.presets import PRESETS
from fsbench.backbones.loading import load_backbone
from fsbench.backbones.networks import load_architecture, register_in_timm
from fsbench.core.seeding import stream

NATIVE = {
    "seal_resnet50": {"architecture": "resnet50", "model_args": {}},
    "resnet50": {"architecture": "resnet50", "model_args": {"norm_layer": "groupnorm1"}},
    "timm/resnet10t": {"architecture": "resnet10t", "model_args": {}},
    "timm/vit_tiny_patch16_224": {"architecture": "vit_tiny_patch16_224"},
}
"""Networks of timm -> what config.json says of them."""
OTHERS = ("toy_resnet", "pilot_resnet", "mobilenet", "scnn", "mlp", "cnn_bn", "seal_resnet50@16")
SIDES = {"timm/vit_tiny_patch16_224": 224}


def make_run(folder: Path, name: str, width: int | None = None, **changes: Any) -> Path:
    """Write a finished run of random weights whose norms are not those of a fresh network.

    Every normaliser of `changes` shifts and scales by its own numbers.
    """
    side = SIDES.get(name, 32)
    with stream("test", 0):
        model = load_architecture(name).at(side).build(5, width)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean = torch.randn_like(module.running_mean)  # type: ignore[arg-type]
                module.running_var = torch.rand_like(module.running_var) + 0.5  # type: ignore[arg-type]
    folder.mkdir(parents=True)
    weights = {k: v.contiguous() for k, v in model.state_dict().items()}
    for layer, shape in changes.get("normalizers", {}).items():
        weights[f"{layer}.normalizer_mean"] = torch.full(shape, 0.3)
        weights[f"{layer}.normalizer_std"] = torch.full(shape, 1.7)
    save_file(weights, folder / "model.safetensors")
    record = RUN_RECORD | {"architecture": name, "width": width, "input_size": side, **changes}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def images(side: int) -> Tensor:
    with stream("images", 0):
        return torch.randn(3, 3, side, side)


def load_timm(folder: Path, **options: Any) -> nn.Module:
    model: nn.Module = timm.create_model(f"local-dir:{folder}", pretrained=True, **options)
    return model.eval()


@pytest.mark.parametrize("name", [*NATIVE, *OTHERS])
def test_the_code_of_the_card_loads_a_run_with_equal_features(
    name: str, tmp_path: Path, cli: CommandLine
) -> None:
    """A network of timm needs no fsbench."""
    network, _, width = name.partition("@")
    folder = make_run(tmp_path / "r-s0", network, int(width) if width else None)
    out, side = tmp_path / "out", SIDES.get(name, 32)
    cli("export", f"run:{folder}", "-o", out)
    config = json.loads((out / "config.json").read_text())
    assert NATIVE.get(name, {"architecture": f"fsbench_{network}"}).items() <= config.items()
    card = (out / "README.md").read_text()
    assert ("register_in_timm()" in card) == (name not in NATIVE)
    loaded: dict[str, Any] = {}
    exec(card.partition("```python\n")[2].partition("```")[0].replace("DIR", str(out)), loaded)
    assert loaded["transform"] is not None
    backbone = load_backbone(f"run:{folder}")
    with torch.no_grad():
        features = backbone.module(images(side))
        difference = (loaded["model"](images(side)) - features).abs().max()
        assert difference <= ("fsbench" not in config["architecture"]) * 1e-5 * features.max()
        whole = load_timm(out)
        weights = load_file(folder / "model.safetensors")
        head = config["pretrained_cfg"]["classifier"]
        logits = features @ weights[f"{head}.weight"].T + weights[f"{head}.bias"]
        assert (whole(images(side)) - logits).abs().max() <= 1e-4 * logits.abs().max()
    settings = resolve_model_data_config(whole)
    assert (settings["mean"], settings["std"]) == ([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])
    assert tuple(settings["input_size"]) == (3, side, side)
    resize, crop, *_ = create_transform(**settings).transforms
    assert (resize.size, tuple(crop.size)) == (int(1.15 * side), (side, side))


def test_every_network_has_a_name_in_timm_once() -> None:
    register_in_timm()
    register_in_timm()
    assert {f"fsbench_{name}" for name in PRESETS} <= set(timm.list_models())


def test_normalisers_of_a_method_are_exported_or_refused(tmp_path: Path, cli: CommandLine) -> None:
    folder = make_run(tmp_path / "a", "toy_resnet", normalizers={"layer1": [8, 1, 1]})
    cli("export", folder, "-o", tmp_path / "out")
    with torch.no_grad():
        loaded = load_timm(tmp_path / "out", num_classes=0)(images(32))
        torch.testing.assert_close(loaded, load_backbone(f"run:{folder}").module(images(32)))
    folder = make_run(tmp_path / "b", "timm/resnet10t", normalizers={"layer1": [64, 1, 1]})
    shown = cli("export", folder, "-o", tmp_path / "no", code=2).err
    assert "normalisers into timm/resnet10t; timm has none" in shown
    assert not (tmp_path / "no").exists()


def test_wrong_features_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    wrong = {("resnet50", 64): ("resnet50", {"norm_layer": "groupnorm"})}
    monkeypatch.setattr("fsbench.api.export.NATIVE", wrong)
    run = make_run(tmp_path / "r", "resnet50")
    shown = cli("export", run, "-o", tmp_path / "out", code=4).err
    assert "gives other features than the run" in shown
    assert not (tmp_path / "out").exists()


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Return a run; `results` beside it holds numbers of it, `both` also of another model."""
    run_folder = make_run(tmp_path / "seal-s0", "toy_resnet")
    facts = load_backbone(f"run:{run_folder}").facts
    for folder in ("results", "both"):
        for name, shots in (("eurosat", 1), ("isic", 1), ("eurosat", 5)):
            data = fakes.official(name)
            fakes.write(tmp_path / folder, 0.6, data=data, shots=shots, backbone=facts)
    fakes.write(tmp_path / "both", 0.4, name="b", data=fakes.official("eurosat"))
    return run_folder


def test_the_card_of_a_run_gets_the_numbers(
    trained: Path, tmp_path: Path, cli: CommandLine
) -> None:
    out, results = tmp_path / "out", tmp_path / "results"
    cli("export", trained, "-o", out)
    cli("export", results, "-o", out)
    card = ModelCard.load(out / "README.md")
    assert card.data.library_name == "timm"
    assert "timm.create_model" in card.text
    rows = [line.split(" | ") for line in card.text.splitlines() if line.startswith("| ")][2:]
    tasks = ["eurosat:5w1s", "eurosat:5w5s", "isic:5w1s"]
    assert [row[0].removeprefix("| ").partition("/")[0] for row in rows] == tasks
    shown = {float(row[1].partition(" ")[0]) for row in rows}
    assert shown == {round(100 * r.score.mean, 2) for r in read(results)}


def test_the_hubs_files_are_read_by_its_library(
    trained: Path, tmp_path: Path, cli: CommandLine
) -> None:
    out, results = tmp_path / "out", tmp_path / "results"
    cli("export", results, "-o", out)
    assert not (out / ".eval_results").exists(), "no benchmark is named"
    cli("export", results, "--benchmark", "lab/cdfsl", "-o", out)
    entries = yaml.safe_load((out / ".eval_results" / "fsbench.yaml").read_text())
    assert {e["value"] for e in entries} == {round(100 * r.score.mean, 2) for r in read(results)}
    tasks = ("eurosat-5w1s", "eurosat-5w5s", "isic-5w1s")
    assert [e["dataset"] for e in entries] == [
        {"id": "lab/cdfsl", "task_id": f"{task}-linear-ibm-32px-n_query=5"} for task in tasks
    ]
    notes = r"eurosat:5w1s/linear@ibm 32px n_query=5: \d+\.\d\d ± \d\.\d\d over 40 episodes.* %"
    assert re.fullmatch(notes, entries[0]["notes"])
    assert entries[0]["date"] == "2026-01-01"
    if hasattr(huggingface_hub, "parse_eval_result_entries"):
        parsed = huggingface_hub.parse_eval_result_entries(entries)
        assert huggingface_hub.eval_result_entries_to_yaml(parsed) == entries


def test_a_card_that_exists_keeps_its_other_parts(
    trained: Path, tmp_path: Path, cli: CommandLine
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "README.md").write_text(
        "---\nlicense: bsd-3-clause\ntags: [mine]\nmodel-index:\n- name: net\n  results:\n"
        "  - task: {type: image-classification}\n    dataset: {name: Beans, type: beans}\n"
        "    metrics:\n    - {type: accuracy, value: 7}\n---\n# Net\n\nAbout it.\n"
    )
    cli("export", tmp_path / "results", "-o", out)
    with (out / "README.md").open("a") as file:
        file.write("\n## More\n")
    cli("export", tmp_path / "results", "-o", out)
    card = ModelCard.load(out / "README.md")
    assert card.text.endswith("\n## More\n")
    assert card.data.license == "bsd-3-clause"
    assert card.data.tags == ["mine"]
    assert [e.dataset_name for e in card.data.eval_results] == ["Beans"]
    assert card.text.startswith("# Net\n\nAbout it.\n\n<!-- fsbench -->")
    assert card.text.count("### Evaluation by fsbench") == 1


def test_what_cannot_be_exported_says_why(trained: Path, tmp_path: Path, cli: CommandLine) -> None:
    both, out = tmp_path / "both", ("-o", tmp_path / "out")
    cases: tuple[tuple[tuple[object, ...], str], ...] = (
        ((both,), "several models: b, seal-s0"),
        ((trained, "--benchmark", "a/b"), "belongs to results"),
        ((f"run:{tmp_path / 'none'}",), "no finished run"),
    )
    for arguments, text in cases:
        assert text in cli("export", *arguments, *out, code=2).err
        assert not (tmp_path / "out").exists()
    cli("export", both / "b", *out)
