"""`fsbench ls protocols`: versions of the spec, told apart."""

from support.cli import CommandLine

from fsbench.api.listing import protocol_specs
from fsbench.core.specs import EpisodicSpec, ImageSpec
from fsbench.core.tasks import ColumnId, TaskId


def test_a_protocol_lists_its_fields(cli: CommandLine) -> None:
    rows = {row["protocol"]: row["fields"] for row in cli.json("ls", "protocols")}
    ibm, startup = rows["linear@ibm"], rows["linear@startup"]
    assert {name for name in ibm if ibm[name] != startup[name]} == {"protocol", "episode.pool"}
    assert rows["affine@ibm"]["affine.lr"] == 0.01


def test_every_variant_is_listed_and_has_a_digest_and_a_column_of_its_own(cli: CommandLine) -> None:
    rows = {row["protocol"]: row for row in cli.json("ls", "protocols")}
    assert rows.keys() == protocol_specs().keys()
    assert rows["linear@startup-disjoint"]["pool"] == "labeled_80"
    assert rows["linear@startup-disjoint"]["track"] == "disjoint"
    small = {"image": ImageSpec(input_size=64)}
    specs = [*protocol_specs().values()]
    specs += [spec.model_copy(update=small) for spec in specs]
    assert len({spec.digest() for spec in specs}) == len(specs)
    columns = {str(ColumnId.of(TaskId.of("x", s), s)) for s in specs}
    assert len(columns) == len(specs)


def test_the_digests_of_published_specs_stay() -> None:
    """Of specs as they were before there were tracks: results on disk are found by these."""
    ibm, startup = (protocol_specs()[name] for name in ("linear@ibm", "linear@startup"))
    assert isinstance(ibm, EpisodicSpec)
    assert isinstance(startup, EpisodicSpec)
    assert ibm.episode.digest()[:12] == "c93846678556"
    assert ibm.digest()[:12] == "fa0a8c5455f0"
    assert startup.digest()[:12] == "1855269bb9b2"
