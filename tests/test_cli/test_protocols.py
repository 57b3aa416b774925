"""`fsbench ls protocols`: versions of the spec, told apart."""

from support.cli import CommandLine

from fsbench.api.listing import protocol_specs
from fsbench.core.specs import ImageSpec
from fsbench.core.tasks import ColumnId, TaskId


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
