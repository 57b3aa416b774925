"""`fsbench reproduce`: test claims of the papers on a small scale."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer import Argument, Option

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.reproductions import ClaimOutcome


def reproduce(
    name: str | None = Argument(None, help="Claim to test; without it, list all claims."),
    seeds: int | None = Option(None, min=1, help="Seeds per figure."),
    output: Path | None = Option(
        None, "-o", "--output", help="Folder for the figures (JSON) and plots."
    ),
    everything: bool = Option(False, "--all", help="Test every claim and print the verdicts."),
    as_json: options.Json = False,
) -> None:
    """Test claims of the papers and compare with the published figures; or list the claims."""
    from fsbench.core.errors import UsageError
    from fsbench.reproductions import CLAIMS

    if name is not None and everything:
        raise UsageError(f"both {name} and --all were given", fix="use one of them")
    if name is None and not everything:
        claims = [
            {"claim": name, "source": c.source, "says": c.statement, "seeds": c.seeds}
            for name, c in ((name, file.CLAIM) for name, file in CLAIMS.items())
        ]
        if as_json:
            console.emit_json(claims)
        else:
            columns = ("claim", "source", "says", "seeds")
            console.table("claims", columns, [[str(row[c]) for c in columns] for row in claims])
        return
    names = CLAIMS.names() if name is None else (name,)
    outcomes = {name: one(name, seeds, output) for name in names}
    if as_json:
        console.emit_json({n: o.model_dump(mode="json") for n, o in outcomes.items()})
        return
    if not everything:
        show(*outcomes.popitem())
        return
    rows = [[n, o.source, o.claim, o.verdict] for n, o in outcomes.items()]
    console.table("verdicts", ("claim", "source", "says", "verdict"), rows)


def one(name: str, seeds: int | None, output: Path | None) -> ClaimOutcome:
    """Test a claim and write its figures to a folder, if there is one."""
    from fsbench.core.io import write_atomic
    from fsbench.core.panels import draw_panels
    from fsbench.core.plotting import write_figure
    from fsbench.reproductions import CLAIMS

    claim = CLAIMS.load(name)
    outcome: ClaimOutcome = claim.run(
        claim.CLAIM.seeds if seeds is None else seeds, console.reporter()
    )
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_atomic(output / f"{name}.json", outcome.model_dump_json(indent=1).encode())
        if outcome.panels:
            drawing = draw_panels(outcome.panels, f"{outcome.source}: {outcome.verdict}")
            write_figure(drawing, output / f"{name}.png")
    return outcome


def show(name: str, outcome: ClaimOutcome) -> None:
    rows = [[f.what, f.published, f.ours, f.verdict] for f in outcome.figures]
    console.table(f"{name}: {outcome.source}", ("figure", "published", "ours", "verdict"), rows)
    for note in outcome.notes:
        typer.echo(note)
    typer.echo(f"\nclaim: {outcome.claim}\nrule: {outcome.rule}\nverdict: {outcome.verdict}")
