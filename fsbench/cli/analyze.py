"""`fsbench analyze`: measure networks and compare them side by side."""

from pathlib import Path

from fsbench.api.options import AnalysisOptions
from fsbench.cli import console, options

FEATURES = (
    *("name", "pool", "layers", "features", "mean", "std", "dtype"),
    *("batch_size", "workers", "cache_size", "features_device"),
)
"""Options of an evaluation that no analysis has: each measures the network as it was trained."""


@options.command("analyze", AnalysisOptions, without=FEATURES, has_config=True)
def analyze(chosen: AnalysisOptions, as_json: options.Json = False) -> None:
    """Analyze backbones: write records beside their results and one figure per analysis."""
    from fsbench.api import analyze as api
    from fsbench.core.plotting import draw_views, write_figure

    output = Path(chosen.output or "results")
    analyzer = api.Analyzer(chosen, output, console.reporter())
    analyses = analyzer.analyze(api.choose_analyses(chosen))
    for name in dict.fromkeys(analysis.question.what for analysis in analyses):
        views = api.label_views([a for a in analyses if a.question.what == name])
        figure = output / "analyses" / f"{name}.png"
        write_figure(draw_views(views), figure)
        console.log(f"figure: {figure}")
    records = [analysis.model_dump(mode="json") for analysis in analyses]
    console.emit(as_json, records, "analyses", *api.analysis_table(analyses))
