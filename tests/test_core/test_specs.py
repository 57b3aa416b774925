"""Specs: digests that stay, names that tell settings apart, settings that contradict."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from support.cases import read_cases
from support.cli import CommandLine

from fsbench.api.listing import protocol_specs
from fsbench.core.specs import ImageSpec, Spec
from fsbench.core.tasks import ColumnId, TaskId

SPEC: TypeAdapter[Spec] = TypeAdapter(Spec)


def make_spec(kind: str, **fields: Any) -> Spec:
    return SPEC.validate_python({"kind": kind, **fields})


CASES = read_cases("specs")


@pytest.mark.parametrize(("kind", "fields", "digest"), CASES["digests"])
def test_digests_of_committed_results_never_change(
    kind: str, fields: dict[str, Any], digest: str
) -> None:
    head = {} if kind in ("episodic", "probe", "knn") else {"adaptation": kind}
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


def test_every_variant_is_listed_and_has_a_digest_and_a_column_of_its_own(cli: CommandLine) -> None:
    rows = {row["protocol"]: row for row in cli.json("ls", "protocols")}
    assert rows.keys() == protocol_specs().keys()
    ibm, startup = (rows[f"linear@{name}"]["fields"] for name in ("ibm", "startup"))
    assert {name for name in ibm if ibm[name] != startup[name]} == {"protocol", "episode.pool"}
    assert rows["affine@ibm"]["fields"]["affine.lr"] == 0.01
    assert rows["linear@startup-disjoint"]["pool"] == "labeled_80"
    assert rows["linear@startup-disjoint"]["track"] == "disjoint"
    small = {"image": ImageSpec(input_size=64)}
    specs = [*protocol_specs().values()]
    specs += [spec.model_copy(update=small) for spec in specs]
    assert len({spec.digest() for spec in specs}) == len(specs)
    columns = {str(ColumnId.of(TaskId.of("x", s), s)) for s in specs}
    assert len(columns) == len(specs)
