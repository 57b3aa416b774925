"""`fsbench report`: write results or a board as the table of a paper."""

from pathlib import Path

import typer
from typer import Argument, Option

from fsbench.cli import console, options
from fsbench.core.errors import UsageError
from leaderboard.render import FORMATS


@options.command("report")
def report(
    results: list[Path] | None = Argument(None, help="Results folders or files."),
    shape: str = Option("md", "--format", help=f"Format: {', '.join(FORMATS.names())}."),
    output: Path | None = Option(None, "-o", "--output", help="Output file; stdout by default."),
    control: str | None = Option(None, help="Model that the others are compared with."),
    figure: Path | None = Option(None, help="File of a figure as well: PDF, PNG or SVG."),
    columns: int = Option(2, min=1, max=2, help="Columns of a paper that the figure fills."),
    board: Path | None = Option(None, help="Folder of a leaderboard, instead of results."),
    seeds: bool = Option(False, "--seeds", help="Print the seeds of a recipe below its row."),
) -> None:
    """Write results or a board as tables of a paper, one per protocol and input size.

    The best result and its ties are bold, significance against a control is marked, and the
    caption states the rules. A figure shows the gaps over the control; without one, accuracy by
    shots, or the tiers of a board or of many models.
    """
    from fsbench.core.plotting import Columns, check_format, write_figure
    from leaderboard.render.figure import draw_tables
    from leaderboard.render.frame import make_frames
    from leaderboard.results import rank_results
    from leaderboard.tables import rank_board

    if bool(results) == (board is not None):
        raise UsageError("report takes results or a board", fix="name results, or --board DIR")
    if figure is not None:
        check_format(figure)
    make = FORMATS.load(shape)
    tables = rank_board(board, console.reporter()) if board else rank_results(results or [])
    text = make(make_frames(tables, control, seeds))
    if figure is not None:
        width: Columns = 1 if columns == 1 else 2
        write_figure(draw_tables(tables, control, width, by_shots=board is None), figure)
        console.log(f"wrote {figure}")
    if output is None:
        typer.echo(text, nl=False)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf8", newline="")
    console.log(f"wrote {output}")
