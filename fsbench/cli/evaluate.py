"""`fsbench benchmark`, `episodic` and `probe`: evaluate frozen backbones."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from fsbench.api.options import EvaluationOptions
from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.core.tasks import Kind

FEW_SHOT = ("shots", "way", "n_query", "heads", "bn_mode", "protocol", "episodes", "spec", "shard")
"""Options that a probe does not have."""
KINDS: "dict[str, tuple[tuple[Kind, ...], str, str]]" = {
    "benchmark": (
        ("probe", "episodic"),
        "eurosat,pets",
        "Run the whole benchmark: linear probe and CD-FSL episodes of one or more backbones.",
    ),
    "episodic": (
        ("episodic",),
        "eurosat:5w5s --heads linear,ridge",
        "Run few-shot episodes: choose ways, shots, heads and target data sets.",
    ),
    "probe": (
        ("probe",),
        "eurosat",
        "Run the linear probe on whole data sets; DATASET:knn is the k-NN probe.",
    ),
}
"""Command -> kinds of its tasks, the tasks of its example, and its help."""


def make_command(kinds: "tuple[Kind, ...]") -> Callable[..., None]:
    """Return a function that evaluates tasks of these kinds and prints the results."""

    def evaluate(chosen: EvaluationOptions, as_json: options.Json = False) -> None:
        import fsbench
        from fsbench.cli.show import print_results
        from fsbench.core.process import is_first_process
        from fsbench.core.progress import format_count

        folder = chosen.output or "results"
        results = fsbench.evaluate(**{**vars(chosen), "kinds": kinds, "output": folder})
        if is_first_process():  # under torchrun the first process alone
            print_results(results, as_json=as_json, models=results.models)
            then = console.suggest("show", folder)
            if chosen.shard:
                n = format_count(len(results), "result")
                then = f"part {chosen.shard} has {n}; fsbench results merge joins all parts"
            console.log(f"saved to {folder}/; {then}")

    return evaluate


for name, (kinds, tasks, about) in KINDS.items():
    options.command(
        name,
        EvaluationOptions,
        without=FEW_SHOT if name == "probe" else (),
        has_config=True,
        about=about,
        example=f"Example: fsbench {name} -m timm/resnet18.a1_in1k -t {tasks} --data DATA",
    )(make_command(kinds))
