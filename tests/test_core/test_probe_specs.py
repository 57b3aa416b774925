"""Specs of probes: digests that stay, names that tell settings apart, settings that contradict."""

from typing import Any

import pytest
from pydantic import ValidationError

from fsbench.core.specs import ImageSpec, KnnSpec, ProbeSpec


@pytest.mark.parametrize(
    ("spec", "digest"),
    [  # of results that are already published
        (ProbeSpec(), "19b44ccaf594acaa87b3fc2af97c22a748fe2a91fa6958ce7a882d8e956c78dc"),
        (
            ProbeSpec(split="derived_80_20", epochs=3),
            "7c3ad6b41eacd1097facbc9a683b8233714b0dabd902a757b23654de85a42da7",
        ),
    ],
)
def test_digests_of_earlier_specs_stay(spec: ProbeSpec, digest: str) -> None:
    assert spec.digest() == digest
    assert ProbeSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("fields", "variant", "views"),
    [
        ({}, "", 0),
        ({"held_out": 0.1}, "", 0),
        ({"augmentation": "views", "views": 4}, " views-4", 4),
        ({"augmentation": "live", "epochs": 7}, " live-views", 7),
        ({"schedule": "cosine"}, " cosine", 0),
        ({"select": "held_out", "held_out": 0.1}, " lr-held-out", 0),
        ({"select": "held_out", "held_out": 0.1, "epoch": "best"}, " held-out", 0),
        ({"score": "balanced_accuracy"}, " balanced", 0),
    ],
)
def test_what_changes_a_probe_changes_digest_and_name(
    fields: dict[str, Any], variant: str, views: int
) -> None:
    spec = ProbeSpec.model_validate(fields)
    assert (" ".join(spec.variant), spec.n_views) == (variant.strip(), views)
    assert spec.label == f"probe-224px{variant.replace(' ', '-')}"
    assert (spec.digest() == ProbeSpec().digest()) == (not fields)
    assert ProbeSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("fields", "variant"),
    [
        ({}, ""),
        ({"k": 5}, " k=5"),
        ({"metric": "euclidean"}, " metric=euclidean weights=uniform"),
        ({"weights": "uniform"}, " weights=uniform"),
        ({"temperature": 0.1}, " temperature=0.1"),
        ({"score": "balanced_accuracy"}, " balanced"),
    ],
)
def test_what_changes_neighbours_changes_digest_and_name(
    fields: dict[str, Any], variant: str
) -> None:
    spec = KnnSpec.model_validate({**fields, "image": ImageSpec(input_size=64)})
    words = (" ".join(spec.variant), spec.label)
    assert words == (variant.strip(), f"knn-64px{variant.replace(' ', '-')}")
    assert (spec.digest() == KnnSpec(image=spec.image).digest()) == (not fields)
    assert KnnSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (ProbeSpec, {"augmentation": "views"}),
        (ProbeSpec, {"views": 3}),
        (ProbeSpec, {"augmentation": "live", "views": 3}),
        (ProbeSpec, {"select": "held_out"}),
        (ProbeSpec, {"epoch": "best", "held_out": 0.1}),
        (ProbeSpec, {"score": "top5"}),
        (ProbeSpec, {"held_out": 0}),
        (ProbeSpec, {"schedule": "linear"}),
        (KnnSpec, {"metric": "euclidean", "weights": "softmax"}),
        (KnnSpec, {"metric": "euclidean", "temperature": 0.07}),
        (KnnSpec, {"temperature": None}),
        (KnnSpec, {"k": 0}),
    ],
)
def test_contradictions_are_refused(
    kind: type[ProbeSpec] | type[KnnSpec], fields: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        kind.model_validate(fields)
