"""Specs: digests that stay, names that tell settings apart, settings that contradict."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from support.cases import read_cases

from fsbench.core.specs import Spec

SPEC: TypeAdapter[Spec] = TypeAdapter(Spec)


def make_spec(kind: str, **fields: Any) -> Spec:
    return SPEC.validate_python({"kind": kind, **fields})


CASES = read_cases("specs")


@pytest.mark.parametrize(("kind", "fields", "digest"), CASES["digests"])
def test_digests_of_committed_results_never_change(
    kind: str, fields: dict[str, Any], digest: str
) -> None:
    head = {} if kind in ("episodic", "probe") else {"adaptation": kind}
    assert make_spec("episodic" if head else kind, **head, **fields).digest() == digest


@pytest.mark.parametrize(("kind", "fields", "variant"), CASES["variants"])
def test_what_changes_a_spec_changes_digest_and_name(
    kind: str, fields: dict[str, Any], variant: str
) -> None:
    spec = make_spec(kind, **fields, image={"input_size": 64})
    start = f"5w1s-{fields.get('adaptation', 'linear')}-ibm" if kind == "episodic" else kind
    assert " ".join(spec.variant) == variant
    assert spec.label == "-".join([start, "64px", *variant.split()])
    assert (spec.digest() == make_spec(kind, image={"input_size": 64}).digest()) == (not fields)
    assert SPEC.validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(("kind", "fields"), CASES["refused"])
def test_contradictions_are_refused(kind: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make_spec(kind, **fields)


def test_settings_that_a_head_lacks_are_not_written() -> None:
    assert "affine" not in make_spec("episodic").model_dump()
    assert "head" not in make_spec("episodic", adaptation="ridge").model_dump()
