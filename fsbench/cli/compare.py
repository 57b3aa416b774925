"""`fsbench compare`: is one entry better, and how many episodes show it?"""

from fsbench.api.options import CompareOptions
from fsbench.cli import console, options


@options.command("compare", CompareOptions)
def compare(chosen: CompareOptions, as_json: options.Json = False) -> None:
    """Compare two entries on shared episodes, per task and overall; one table per head and size."""
    from fsbench.api.compare import LEGEND
    from fsbench.api.compare import compare as compare_entries

    comparisons = compare_entries(**vars(chosen))
    if as_json:
        console.emit_json([comparison.model_dump(mode="json") for comparison in comparisons])
        return
    console.show_tables(comparisons.tables())
    console.log(LEGEND)
