"""`fsbench claims`: test claims of the papers on a small scale."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Argument, Option

from fsbench.api.options import Machine
from fsbench.cli import console, options
from fsbench.core.options import option

if TYPE_CHECKING:
    from fsbench.api.machine import RunContext
    from fsbench.claims.engine import ClaimOutcome, StatementOutcome


@dataclass(frozen=True, kw_only=True)
class ClaimOptions(Machine):
    device: str = option("cpu", "Machine", "auto, cpu, cuda, cuda:N or mps.")


@options.command("claims", ClaimOptions, "data", "device")
def claims(
    machine: ClaimOptions,
    names: list[str] | None = Argument(None, help="Claims to test, or all; none lists them."),
    seeds: int | None = Option(None, "--n-seeds", min=2, help="Seeds per figure."),
    output: Path | None = Option(
        None, "-o", "--output", help="Folder for the outcomes (JSON), curves (JSON) and plots."
    ),
    full: bool = Option(False, "--full", help="Run more seeds or on a GPU: minutes to hours."),
    jobs: int = Option(2, "-j", "--jobs", min=1, max=64, help="Processes of one thread each."),
    as_json: options.Json = False,
) -> None:
    """Test claims of the papers and compare with the published figures; or list the claims."""
    from fsbench.api.machine import RunContext
    from fsbench.claims import CLAIMS, list_statements
    from fsbench.claims.engine import ClaimSettings, run_claims
    from fsbench.core import process

    if not names:
        console.emit(as_json, list_statements(), "claims")
        return
    settings = ClaimSettings(seeds, full, machine.roots, jobs, machine.device)
    chosen = list(CLAIMS.names() if "all" in names else names)
    tested = run_claims([CLAIMS.load(name) for name in chosen], settings, console.reporter())
    outcomes, device = {}, process.resolve_device(machine.device)
    started = RunContext(device)
    for name, outcome in zip(chosen, tested, strict=True):
        outcomes[name] = record_outcome(name, outcome, started, output)
        started = RunContext(device)
    if as_json:
        console.emit_json({n: o.model_dump(mode="json") for n, o in outcomes.items()})
    elif len(outcomes) > 1:
        verdicts = [
            [claim, s.name, describe_conditions(s), s.verdict, s.fault or "", s.reason]
            for claim, outcome in outcomes.items()
            for s in outcome.statements
        ]
        titles = ("claim", "statement", "condition", "verdict", "fault of a miss", "reason")
        console.table("verdicts", titles, verdicts)
    else:
        show_outcome(*outcomes.popitem())


def record_outcome(
    name: str, outcome: "ClaimOutcome", started: "RunContext", output: Path | None
) -> "ClaimOutcome":
    """Return the outcome with its provenance; write it, curves and plot to a folder, if any.

    started: at the end of the claim before, so that the seconds of several claims add up.
    """
    import json

    from fsbench.core.io import write_atomic
    from fsbench.core.plotting import draw_views, write_figure

    number = f" --n-seeds {outcome.seeds}" if outcome.seeds else ""
    command = f"fsbench claims {name}{number}{' --full' if outcome.full else ''}"
    provenance = started.provenance().model_copy(update={"command": command})
    outcome = outcome.model_copy(update={"provenance": provenance})
    if output is not None:
        stem = f"{name}-full" if outcome.full else name
        record = outcome.model_dump_json(indent=1, exclude={"views"}).encode()
        write_atomic(output / f"{stem}.json", record + b"\n")
        if outcome.views:
            curves = [view.model_dump(mode="json") for view in outcome.views]
            write_atomic(output / f"{stem}-curves.json", json.dumps(curves).encode())
            verdicts = ", ".join(f"{s.name}: {s.verdict}" for s in outcome.statements)
            drawing = draw_views(outcome.views, f"{outcome.source}: {verdicts}")
            write_figure(drawing, output / f"{stem}.png")
    return outcome


def describe_conditions(statement: "StatementOutcome") -> str:
    """Return what was measured of the conditions, those that fail first."""
    failing_first = sorted(statement.conditions, key=lambda condition: condition.holds)
    return "; ".join(f"{'holds' if c.holds else 'fails'}: {c.what} {c.ours}" for c in failing_first)


def show_outcome(name: str, outcome: "ClaimOutcome") -> None:
    """Print the statements of one claim, the conditions of each before its figures."""
    from fsbench.claims.engine import OVERALL, read_claim_card

    card = read_claim_card(name)
    typer.echo(card.set_up)
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
        typer.echo(f"verdict: {statement.verdict}\nreason: {statement.reason}")
        if statement.fault:
            because = card.statements[statement.name].fault_reason
            typer.echo(f"fault of a miss: {statement.fault}: {because}")
    typer.echo("\n".join(["", OVERALL, *outcome.notes]))
