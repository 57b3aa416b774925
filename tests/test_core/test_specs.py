"""Specs: digests that stay, names that tell settings apart, settings that contradict."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from fsbench.core.specs import Spec

SPEC: TypeAdapter[Spec] = TypeAdapter(Spec)


def make_spec(kind: str, **fields: Any) -> Spec:
    return SPEC.validate_python({"kind": kind, **fields})


DIGESTS: list[tuple[str, dict[str, Any], str]] = [
    ("episodic", {}, "fa0a8c5455f0a32747237b12c7db92d19ee260ed4db97a4195221eaf61a0a6c7"),
    ("affine", {}, "8cd88a5c088d66734c4b065dcbf17066237a58580bd8822db1a8207639cff5dd"),
    ("ridge", {}, "88d7a163f8874fb3b01ae6d430de966b2ab9c6093650383c96f8477074e63e33"),
    (
        "ridge",
        {"fitted": {"normalize": "none"}},
        "ac6aee09f52b9066ae797369203212a7a36078aade55c89828c2835d29678e83",
    ),
    ("probe", {}, "19b44ccaf594acaa87b3fc2af97c22a748fe2a91fa6958ce7a882d8e956c78dc"),
    (
        "probe",
        {"split": "derived_80_20", "epochs": 3},
        "7c3ad6b41eacd1097facbc9a683b8233714b0dabd902a757b23654de85a42da7",
    ),
]
"""Kind or head, fields and digest of results that are already published."""


@pytest.mark.parametrize(("kind", "fields", "digest"), DIGESTS)
def test_digests_of_committed_results_never_change(
    kind: str, fields: dict[str, Any], digest: str
) -> None:
    head = {} if kind in ("episodic", "probe") else {"adaptation": kind}
    assert make_spec("episodic" if head else kind, **head, **fields).digest() == digest


VARIANTS: list[tuple[str, dict[str, Any], str]] = [
    ("episodic", {}, ""),
    ("episodic", {"adaptation": "affine"}, ""),
    ("episodic", {"adaptation": "affine", "bn_mode": "train"}, "bn-train"),
    ("episodic", {"adaptation": "affine", "affine": {"dtype": "bfloat16"}}, "bfloat16"),
    ("episodic", {"adaptation": "ridge", "fitted": {"normalize": "none"}}, "normalize=none"),
    ("probe", {}, ""),
    ("probe", {"held_out": 0.1}, ""),
    ("probe", {"schedule": "cosine"}, "cosine"),
    ("probe", {"select": "held_out", "held_out": 0.1}, "lr-held-out"),
    ("probe", {"select": "held_out", "held_out": 0.1, "epoch": "best"}, "held-out"),
    ("probe", {"score": "balanced_accuracy"}, "balanced"),
    ("knn", {}, ""),
    ("knn", {"k": 5}, "k=5"),
    ("knn", {"metric": "euclidean"}, "metric=euclidean"),
    ("knn", {"temperature": 0.1}, "temperature=0.1"),
    ("knn", {"score": "balanced_accuracy"}, "balanced"),
]
"""Fields, and the words that name a spec beside the default."""


@pytest.mark.parametrize(("kind", "fields", "variant"), VARIANTS)
def test_what_changes_a_spec_changes_digest_and_name(
    kind: str, fields: dict[str, Any], variant: str
) -> None:
    spec = make_spec(kind, **fields, image={"input_size": 64})
    start = f"5w1s-{fields.get('adaptation', 'linear')}-ibm" if kind == "episodic" else kind
    assert " ".join(spec.variant) == variant
    assert spec.label == "-".join([start, "64px", *variant.split()])
    assert (spec.digest() == make_spec(kind, image={"input_size": 64}).digest()) == (not fields)
    assert SPEC.validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("episodic", {"affine": {}}),
        ("episodic", {"protocol": "startup"}),
        ("episodic", {"adaptation": "affine", "affine": None}),
        ("episodic", {"bn_mode": "train"}),
        ("episodic", {"adaptation": "affine", "affine": {"lr": 0}}),
        ("episodic", {"adaptation": "affine", "affine": {"rate": 1}}),
        ("episodic", {"fitted": {}}),
        ("episodic", {"adaptation": "../ridge"}),
        ("episodic", {"adaptation": ["ridge"]}),
        ("probe", {"augmentation": "views"}),
        ("probe", {"select": "held_out"}),
        ("probe", {"epoch": "best", "held_out": 0.1}),
        ("probe", {"score": "top5"}),
        ("probe", {"held_out": 0}),
        ("probe", {"schedule": "linear"}),
        ("knn", {"metric": "manhattan"}),
        ("knn", {"temperature": None}),
        ("knn", {"k": 0}),
    ],
)
def test_contradictions_are_refused(kind: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make_spec(kind, **fields)


def test_settings_that_a_head_lacks_are_not_written() -> None:
    assert "affine" not in make_spec("episodic").model_dump()
    assert "head" not in make_spec("episodic", adaptation="ridge").model_dump()
