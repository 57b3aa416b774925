"""Specs: digests that name result files stay as they were, contradictions are refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from fsbench.core.specs import AffineSpec, EpisodicSpec


def test_digests_of_committed_results_never_change() -> None:
    assert EpisodicSpec().digest()[:16] == "fa0a8c5455f0a327"
    assert "affine" not in EpisodicSpec().model_dump()


def test_affine_settings_are_fields_of_the_spec() -> None:
    spec = EpisodicSpec(adaptation="affine")
    assert spec.affine == AffineSpec(lr=0.01, momentum=0.0, dampening=0.0, weight_decay=0.0)
    assert EpisodicSpec.model_validate_json(spec.model_dump_json()) == spec
    fields = {"adaptation": "affine", "affine": {"lr": 0.1}}
    other = EpisodicSpec.model_validate(fields)
    assert other.affine == AffineSpec(lr=0.1)
    assert other.digest() != spec.digest() != EpisodicSpec().digest()
    train = EpisodicSpec(adaptation="affine", bn_mode="train")
    assert train.label == "5w1s-affine-ibm-224px-bn-train"
    assert spec.label == "5w1s-affine-ibm-224px"


@pytest.mark.parametrize(
    "fields",
    [
        {"affine": {}},
        {"adaptation": "affine", "affine": None},
        {"bn_mode": "train"},
        {"adaptation": "affine", "affine": {"lr": 0}},
        {"adaptation": "affine", "affine": {"rate": 1}},
    ],
    ids=str,
)
def test_contradictions_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EpisodicSpec.model_validate(fields)
