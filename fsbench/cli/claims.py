"""`fsbench claims`: test claims of the papers on a small scale."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Argument, Option

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.claims import ClaimOutcome, ClaimSettings, StatementOutcome


def claims(
    name: str | None = Argument(None, help="Claim to test; without it, list all claims."),
    seeds: int | None = Option(None, min=1, help="Seeds per figure."),
    data: options.Data = None,
    output: Path | None = Option(
        None, "-o", "--output", help="Folder for the outcomes (JSON), curves (JSON) and plots."
    ),
    everything: bool = Option(False, "--all", help="Test every claim and print the verdicts."),
    full: bool = Option(False, "--full", help="Run more seeds or on a GPU: minutes to hours."),
    processes: int = Option(2, min=1, max=64, help="Processes of one thread each."),
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Test claims of the papers and compare with the published figures; or list the claims."""
    from fsbench.claims import CLAIMS, ClaimSettings
    from fsbench.core.errors import UsageError
    from fsbench.data.catalog import DataRoots

    if name is not None and everything:
        raise UsageError(f"both {name} and --all were given", fix="use one of them")
    if full and name is None:
        raise UsageError("--full without a claim", fix="name one claim")
    if name is None and not everything:
        list_claims(as_json)
        return
    outcomes = {}
    for claim in CLAIMS.names() if name is None else (name,):
        described = CLAIMS.load(claim).CLAIM
        number = described.full_seeds if full else described.seeds
        settings = ClaimSettings(
            seeds=number if seeds is None else seeds,
            first_seed=described.first_seed,
            full=full,
            data=DataRoots.parse(data or ()),
            processes=processes,
            device=device,
        )
        outcomes[claim] = run_claim(claim, settings, output)
    if as_json:
        console.emit_json({n: o.model_dump(mode="json") for n, o in outcomes.items()})
    elif everything:
        show_verdicts(outcomes)
    else:
        show_outcome(*outcomes.popitem())


def list_claims(as_json: bool) -> None:
    """List all statements with their conditions and the recorded verdicts."""
    from fsbench.claims import list_statements

    rows = list_statements()
    if as_json:
        console.emit_json(rows)
        return
    columns = tuple(rows[0])
    console.table("claims", columns, [[str(row[c]) for c in columns] for row in rows])


def run_claim(name: str, settings: "ClaimSettings", output: Path | None) -> "ClaimOutcome":
    """Test a claim and write outcome, curves and plot to a folder, if there is one."""
    import json

    from fsbench.api.machine import Machine
    from fsbench.claims import CLAIMS
    from fsbench.core.io import write_atomic
    from fsbench.core.panels import draw_panels
    from fsbench.core.plotting import write_figure

    started = Machine(device=settings.device).start()
    outcome: ClaimOutcome = CLAIMS.load(name).run(settings, console.reporter())
    number = f" --seeds {settings.seeds}" if settings.seeds else ""
    command = f"fsbench claims {name}{number}{' --full' if settings.full else ''}"
    provenance = started.provenance().model_copy(update={"command": command})
    outcome = outcome.model_copy(update={"provenance": provenance})
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        stem = f"{name}-full" if settings.full else name
        record = outcome.model_dump_json(indent=1, exclude={"panels"}).encode()
        write_atomic(output / f"{stem}.json", record + b"\n")
        if outcome.panels:
            curves = [panel.model_dump(mode="json") for panel in outcome.panels]
            write_atomic(output / f"{stem}-curves.json", json.dumps(curves).encode())
            verdicts = ", ".join(f"{s.name}: {s.verdict}" for s in outcome.statements)
            drawing = draw_panels(outcome.panels, f"{outcome.source}: {verdicts}")
            write_figure(drawing, output / f"{stem}.png")
    return outcome


def show_verdicts(outcomes: "Mapping[str, ClaimOutcome]") -> None:
    """Print condition, verdict and reason of every statement, one row each."""
    rows = [
        [name, s.name, describe_conditions(s), s.verdict, s.reason]
        for name, outcome in outcomes.items()
        for s in outcome.statements
    ]
    console.table("verdicts", ("claim", "statement", "condition", "verdict", "reason"), rows)


def describe_conditions(statement: "StatementOutcome") -> str:
    """Return what was measured of the conditions, those that fail first."""
    failing_first = sorted(statement.conditions, key=lambda condition: condition.holds)
    return "; ".join(f"{'holds' if c.holds else 'fails'}: {c.what} {c.ours}" for c in failing_first)


def show_outcome(name: str, outcome: "ClaimOutcome") -> None:
    """Print the statements of one claim, the conditions of each before its figures."""
    from fsbench.claims import OVERALL

    for statement in outcome.statements:
        typer.echo(f"{name}, {statement.name}: {outcome.source}\n{statement.statement}\n")
        rows = [
            [c.what, c.required, c.ours, "holds" if c.holds else "fails"]
            for c in statement.conditions
        ]
        console.table("condition", ("needed", "required", "ours", ""), rows)
        figures = [[f.what, f.published, f.ours, f.verdict] for f in statement.figures]
        console.table("figures", ("figure", "published", "ours", "verdict"), figures)
        typer.echo(f"rule: {statement.rule}")
        typer.echo(f"verdict: {statement.verdict}\nreason: {statement.reason}\n")
    typer.echo(OVERALL)
    for note in outcome.notes:
        typer.echo(note)
