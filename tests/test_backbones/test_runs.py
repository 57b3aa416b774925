"""run:DIR: the trunk with its record, the whole classifier, the control; strict in all."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support import methods as fakes_methods

from fsbench import backbones
from fsbench.backbones.base import weights_hash
from fsbench.core.errors import CheckpointError, FsbenchError, UsageError

TRAINING = fakes_methods.training("llf", 2, steps=30)
COST = TRAINING.model_dump(mode="json", exclude={"recipe", "steps"}) | {
    "recipe_digest": TRAINING.recipe_digest,
    "recipe_fields": TRAINING.recipe,
}
"""What a finished run states of its training."""


def edit(folder: Path, **changes: Any) -> None:
    record = json.loads((folder / "run.json").read_text()) | changes
    (folder / "run.json").write_text(json.dumps(record))


def test_the_facts_of_a_run(run_folder: Path) -> None:
    facts = backbones.load_backbone(f"run:{run_folder}").facts
    assert facts.model_dump(exclude={"ref", "weights_hash"}) == {
        "source": "run",
        "architecture": "fsbench/toy_resnet@4",
        "feature_dim": 32,
        "features": "global average pooling",
        "input_size": 24,
        "mean": (0.4, 0.5, 0.6),
        "std": (0.2, 0.3, 0.4),
        "n_parameters": facts.n_parameters,
        "n_affine": facts.n_affine,
        "random_init": None,
        "recipe": "toy/normal",
        "recipe_digest": "ab" * 32,
        "pretraining_data": ("toy_source",),
        "source_accuracy": 0.75,
        "steps": 30,
        "stated_by": dict.fromkeys(("input_size", "mean", "std"), "run record"),
    }
    weights = load_file(run_folder / "model.safetensors")
    assert facts.weights_hash == weights_hash(weights, ("fc",))
    trunk = [t for n, t in weights.items() if n.endswith((".weight", ".bias")) and "fc" not in n]
    assert facts.n_parameters == sum(t.numel() for t in trunk)
    assert facts.n_affine == sum(t.numel() for t in trunk if t.ndim == 1)


def test_the_classifier_is_the_backbone_and_its_head(run_folder: Path) -> None:
    whole = backbones.load_classifier(f"run:{run_folder}")
    trunk = backbones.load_backbone(f"run:{run_folder}")
    images = torch.linspace(-1, 1, 2 * 3 * 24 * 24).view(2, 3, 24, 24)
    weights = load_file(run_folder / "model.safetensors")
    with torch.no_grad():
        by_hand = trunk.module(images) @ weights["fc.weight"].T + weights["fc.bias"]
        torch.testing.assert_close(whole.model(images), by_hand)
    assert whole.roles.head == "fc"
    assert whole.architecture == "toy_resnet"
    assert whole.facts == trunk.facts


def test_only_a_run_has_a_classifier_and_a_meta_learner_has_none(run_folder: Path) -> None:
    edit(run_folder, recipe_fields={"loader": "episodes"})
    for ref in ("timm/resnet18", f"run:{run_folder}"):
        with pytest.raises(UsageError, match="no classifier of a source"):
            backbones.load_classifier(ref)


def test_the_control_of_a_run_keeps_its_shape_and_forgets_its_training(run_folder: Path) -> None:
    edit(run_folder, evaluation_size=224)
    control = backbones.load_backbone(f"run:{run_folder}", random_init=1).facts
    trained = backbones.load_backbone(f"run:{run_folder}").facts
    assert control.weights_hash != trained.weights_hash
    same = ("architecture", "feature_dim", "input_size", "mean", "std", "n_parameters")
    assert all(getattr(control, f) == getattr(trained, f) for f in same)
    assert control.evaluation_size == trained.evaluation_size == 224
    assert (control.recipe, control.steps, control.source_accuracy) == (None, None, None)
    assert control.pretraining_data == ()
    assert control.random_init == 1


def test_a_head_that_does_not_fit_breaks_the_classifier_only(run_folder: Path) -> None:
    edit(run_folder, n_classes=6)
    backbones.load_backbone(f"run:{run_folder}")
    with pytest.raises(CheckpointError, match=r"fc\.weight is \(5, 32\), not \(6, 32\)"):
        backbones.load_classifier(f"run:{run_folder}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 8}, r"conv1\.weight is \(4, 3, 3, 3\), not \(8, 3, 3, 3\)"),
        ({"architecture": "toy_resnte"}, "unknown architecture 'toy_resnte'"),
        ({"mean": [0.5]}, r"run\.json is damaged: mean"),
        ({"std": [0.1, 0.0, 0.1]}, r"run\.json is damaged: std"),
        ({"recipe_digest": "abc"}, r"run\.json is damaged: recipe_digest"),
        ({"source_accuracy": 1.5}, r"run\.json is damaged: source_accuracy"),
        ({"width": 64}, r"run\.json is damaged: it describes \d+ weights, more than"),
        ({"normalizers": {"layer9": []}}, r"run\.json is damaged: normalizers.*layer9"),
        ({"normalizers": {"layer1": [2**31] * 2}}, r"more than model\.safetensors has bytes"),
        ({**COST, "recipe_fields": fakes_methods.recipe("normal", 2)}, "recipe_fields have the"),
        ({**COST, "flops": -1}, r"damaged: training\.flops"),
    ],
)
def test_a_record_that_lies(run_folder: Path, changes: dict[str, Any], message: str) -> None:
    edit(run_folder, **changes)
    with pytest.raises(FsbenchError, match=message):
        backbones.load_backbone(f"run:{run_folder}")


@pytest.mark.parametrize("file", ["run.json", "model.safetensors"])
def test_an_unfinished_run(run_folder: Path, file: str) -> None:
    (run_folder / file).unlink()
    with pytest.raises(UsageError, match="has no finished run") as caught:
        backbones.load_backbone(f"run:{run_folder}")
    assert "fsbench pretrain" in caught.value.fix


@pytest.mark.parametrize("lacking", ["", "flops", "source_fingerprint"])
def test_the_facts_carry_recipe_and_cost_where_a_record_states_all_of_it(
    lacking: str, run_folder: Path
) -> None:
    edit(run_folder, **{**COST, lacking: None})
    facts = backbones.load_backbone(f"run:{run_folder}").facts
    assert facts.training == (None if lacking else TRAINING)
    assert backbones.load_backbone(f"run:{run_folder}", random_init=0).facts.training is None
