"""`fsbench analyze`: measure networks and compare them side by side."""

from pathlib import Path

from typer import Option

from fsbench.cli import console, options


def analyze(
    model: options.Model,
    what: list[str] = Option(..., help="Analyses (fsbench ls analyses) or all; by commas."),
    source: str | None = Option(
        None, help="Source images (default: those that a run was trained on)."
    ),
    data: options.Data = None,
    assignments: list[str] | None = Option(
        None, "--set", help="Setting of an analysis, e.g. hessian.top=10; repeatable."
    ),
    limit: int | None = Option(
        None, "--limit", "-L", min=1, help="Use at most N images; the number is recorded."
    ),
    arch: options.Arch = None,
    random_init: options.RandomInit = None,
    output: options.Output = Path("results"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    cache: options.Cache = None,
    overwrite: options.Overwrite = False,
    yes: options.Yes = False,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Analyze backbones: write records beside their results and one figure per analysis."""
    from fsbench.api import analyze as api
    from fsbench.api.options import Machine
    from fsbench.api.request import Models
    from fsbench.core.panels import draw_panels
    from fsbench.core.plotting import write_figure

    names = options.split(what)
    choice = api.choose_analyses(names, assignments or (), limit)
    analyses = api.analyze(
        Models(tuple(dict.fromkeys(options.split(model, "model"))), arch, random_init),
        choice,
        source=source,
        output=output,
        machine=Machine(
            data=options.split(data, "data"), device=device, threads=threads, cache=cache
        ),
        lenient=api.ALL in names,
        overwrite=overwrite,
        yes=yes,
        report=console.reporter(),
    )
    for name in dict.fromkeys(analysis.question.what for analysis in analyses):
        panels = api.analysis_panels([a for a in analyses if a.question.what == name])
        figure = output / "analyses" / f"{name}.png"
        write_figure(draw_panels(panels, ""), figure)
        console.log(f"figure: {figure}")
    records = [analysis.model_dump(mode="json") for analysis in analyses]
    console.emit(as_json, records, "analyses", *api.analysis_table(analyses))
