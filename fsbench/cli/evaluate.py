"""`fsbench benchmark`, `episodic` and `probe`: evaluate frozen backbones."""

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer
from typer import Option

from fsbench.cli import options

if TYPE_CHECKING:
    from fsbench.core.tasks import Kind


class CommandOptions:
    """Options of the three commands in the order of --help; `fsbench.evaluate` checks them."""

    model: options.Model
    tasks: options.Tasks = None
    shots: list[str] | None = Option(
        None, "--shots", "--n-shot", help="Shots, e.g. 1,5; default 1,5,20,50."
    )
    way: int | None = Option(None, "--way", "--n-way", min=2, help="Classes per episode (5).")
    n_query: int = Option(
        15, min=1, max=1000, help="Queries per class in an episode (official boards require 15)."
    )
    adapt: list[str] | None = Option(
        None,
        help="Per-episode classifier: linear (default), affine (also tunes norm layers; slow), "
        "one of `fsbench ls heads`, or py:FILE:FUNCTION (your own).",
    )
    assignments: list[str] | None = Option(
        None,
        "--set",
        help="Setting of a head (ridge.lam=10) or of probes (probe.views=8); repeatable.",
    )
    bn_mode: str = Option(
        "eval", help="BatchNorm while tuning `affine`: eval (source statistics) or train."
    )
    protocol: str | None = Option(
        None, help="ibm (all images), startup (labeled_80), or either with -disjoint."
    )
    episodes: int = Option(
        600,
        "--episodes",
        "--n-tasks",
        min=1,
        max=100_000,
        help="Episodes per task (official boards require 600).",
    )
    input_size: str = Option(
        "auto",
        help="Input resolution in pixels, needed where nothing states the model's; auto: 224 for "
        "models trained at 128 px or more, else native; native: the training resolution.",
    )
    interpolation: str = Option("bilinear", help="Resizing: bilinear, bicubic or lanczos.")
    crop: float | None = Option(
        None, help="Part of the resized side that the centre crop takes (default 1/1.15)."
    )
    spec: list[str] | None = Option(
        None, help="Result or spec file (JSON): evaluate exactly its spec; -t then names data sets."
    )
    name: str | None = Option(None, help="Name of the model in results (default: from -m).")
    arch: options.Arch = None
    random_init: options.RandomInit = None
    pool: str = Option(
        "native", help="Pooling of features: native (the model's), cls, avg, cls+avg or max."
    )
    layers: str = Option(
        "last", help="Layers of features: last, last4 (last four blocks) or a module's name."
    )
    features: str = Option(
        "trunk", help="trunk, or head: the class scores of a py: model that keeps its classifier."
    )
    mean: str | None = Option(
        None,
        help="Mean of images (0 to 1), needed where nothing states the model's: imagenet, half, "
        "none or R,G,B.",
    )
    std: str | None = Option(None, help="Standard deviation of images, as --mean.")
    data: options.Data = None
    output: options.Output = Path("results")
    cache: options.Cache = None
    device: options.Device = "auto"
    threads: options.Threads = None
    batch_size: options.BatchSize = None
    workers: options.Workers = 2
    seed: options.Seed = 0
    limit: options.Limit = None
    shard: str | None = Option(
        None, help="i/n: evaluate only this part of the episodes; merge the parts later."
    )
    overwrite: options.Overwrite = False
    yes: options.Yes = False
    as_json: options.Json = False
    config: options.Config = None


FEW_SHOT = (
    *("shots", "way", "n_query", "adapt", "bn_mode", "protocol", "episodes", "spec", "name"),
    "shard",
)
"""Options that a probe does not have."""
BENCHMARK = "Run the whole benchmark: linear probe and CD-FSL episodes of one or more backbones."
EPISODIC = "Run few-shot episodes: choose ways, shots, heads and target data sets."
PROBE = "Run the linear probe on whole data sets; DATASET:knn is the k-NN probe."


def register(app: typer.Typer) -> None:
    app.command("benchmark")(evaluation_command(("probe", "episodic"), BENCHMARK))
    app.command("episodic")(evaluation_command(("episodic",), EPISODIC))
    app.command("probe")(evaluation_command(("probe",), PROBE, without=FEW_SHOT))


def evaluation_command(
    kinds: "tuple[Kind, ...]", help_text: str, without: tuple[str, ...] = ()
) -> Callable[..., None]:
    """Return a command that evaluates these kinds of tasks, with all options but `without`."""

    def command(**values: Any) -> None:
        import fsbench
        from fsbench.cli import console
        from fsbench.cli.show import print_results
        from fsbench.core.distributed import is_first_process
        from fsbench.core.tasks import integers

        del values["config"]
        as_json, shots = values.pop("as_json"), values.pop("shots", None)
        values |= {name: options.split(values[name]) for name in ("model", "tasks", "data")}
        results = fsbench.evaluate(
            kinds=kinds,
            shots=integers(shots, "--shots") if shots else None,
            heads=options.split(values.pop("adapt", None)) or None,
            settings=values.pop("assignments") or (),
            spec=values.pop("spec", None) or (),
            **values,
        )
        if is_first_process():  # under torchrun the first process alone
            print_results(results, as_json=as_json, models=results.models)
            folder = values["output"]
            console.log(f"saved to {folder}/; next: fsbench show {folder}")

    hints = get_type_hints(CommandOptions, include_extras=True)
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=getattr(CommandOptions, name, Parameter.empty),
            annotation=hint,
        )
        for name, hint in hints.items()
        if name not in without
    ]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = help_text
    return command
