"""`fsbench benchmark`, `episodic` and `probe`: evaluate frozen backbones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import options

if TYPE_CHECKING:
    from fsbench.api.results import Results
    from fsbench.core.tasks import Kind

Shots = Annotated[
    list[str] | None,
    typer.Option("--shots", "--n-shot", help="Shots, e.g. 1,5; default 1,5,20,50."),
]
Way = Annotated[
    int | None, typer.Option("--way", "--n-way", min=2, help="Classes per episode (5).")
]
Adapt = Annotated[
    list[str] | None,
    typer.Option(
        "--adapt",
        help="Per-episode classifier: linear (default), affine (also tunes norm layers; slow), "
        "or one of `fsbench ls heads`.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Setting of a head (ridge.lam=10) or of probes (probe.views=8); repeatable."
    ),
]
BnMode = Annotated[
    str,
    typer.Option(
        "--bn-mode", help="BatchNorm while tuning `affine`: eval (source statistics) or train."
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        "--protocol", help="ibm (all images), startup (labeled_80), or either with -disjoint."
    ),
]
Episodes = Annotated[
    int,
    typer.Option(
        "--episodes",
        "--n-tasks",
        min=1,
        max=100_000,
        help="Episodes per task (official boards require 600).",
    ),
]
InputSize = Annotated[
    str,
    typer.Option(
        "--input-size",
        help="Input resolution in pixels, or 'native' (the model's training resolution).",
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        "--shard", help="i/n: evaluate only this part of the episodes; merge the parts later."
    ),
]
Name = Annotated[
    str | None, typer.Option("--name", help="Name of the model in results (default: from -m).")
]

Spec = Annotated[
    list[str] | None,
    typer.Option(
        "--spec",
        help="Result or spec file (JSON): evaluate exactly its spec; -t then names data sets.",
    ),
]
DEFAULT_OUTPUT = Path("results")


def register(app: typer.Typer) -> None:
    app.command("benchmark")(evaluation_command(("probe", "episodic"), BENCHMARK))
    app.command("episodic")(evaluation_command(("episodic",), EPISODIC))
    app.command("probe")(probe)


BENCHMARK = "Run the whole benchmark: linear probe and CD-FSL episodes of one or more backbones."
EPISODIC = "Run few-shot episodes: choose ways, shots, heads and target data sets."


def evaluation_command(kinds: tuple[Kind, ...], help_text: str) -> Callable[..., None]:
    """Return a command that evaluates these kinds of tasks."""

    def evaluate(
        model: options.Model,
        tasks: options.Tasks = None,
        shots: Shots = None,
        way: Way = None,
        adapt: Adapt = None,
        assignments: Set = None,
        bn_mode: BnMode = "eval",
        protocol: Protocol = None,
        episodes: Episodes = 600,
        input_size: InputSize = "224",
        spec: Spec = None,
        name: Name = None,
        arch: options.Arch = None,
        random_init: options.RandomInit = None,
        data: options.Data = None,
        output: options.Output = DEFAULT_OUTPUT,
        cache: options.Cache = None,
        device: options.Device = "auto",
        threads: options.Threads = None,
        batch_size: options.BatchSize = None,
        workers: options.Workers = 2,
        seed: options.Seed = 0,
        limit: options.Limit = None,
        shard: Shard = None,
        overwrite: options.Overwrite = False,
        yes: options.Yes = False,
        as_json: options.Json = False,
        config: options.Config = None,
    ) -> None:
        import fsbench
        from fsbench.core.tasks import integers

        results = fsbench.evaluate(
            options.split(model),
            options.split(tasks),
            data=options.split(data),
            episodes=episodes,
            input_size=input_size,
            shots=integers(shots, "--shots") if shots else None,
            way=way,
            heads=options.split(adapt) or None,
            protocol=protocol,
            kinds=kinds,
            settings=assignments or (),
            bn_mode=bn_mode,
            seed=seed,
            limit=limit,
            shard=shard,
            spec=spec or (),
            arch=arch,
            random_init=random_init,
            name=name,
            device=device,
            threads=threads,
            batch_size=batch_size,
            workers=workers,
            cache=cache,
            output=output,
            overwrite=overwrite,
            yes=yes,
        )
        show(results, as_json)

    evaluate.__doc__ = help_text
    return evaluate


def probe(
    model: options.Model,
    tasks: options.Tasks = None,
    assignments: Set = None,
    input_size: InputSize = "224",
    arch: options.Arch = None,
    random_init: options.RandomInit = None,
    data: options.Data = None,
    output: options.Output = DEFAULT_OUTPUT,
    cache: options.Cache = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
    batch_size: options.BatchSize = None,
    workers: options.Workers = 2,
    seed: options.Seed = 0,
    limit: options.Limit = None,
    overwrite: options.Overwrite = False,
    yes: options.Yes = False,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Run the linear probe on whole data sets; DATASET:knn is the k-NN probe."""
    import fsbench

    results = fsbench.evaluate(
        options.split(model),
        options.split(tasks),
        data=options.split(data),
        input_size=input_size,
        kinds=("probe",),
        settings=assignments or (),
        seed=seed,
        limit=limit,
        arch=arch,
        random_init=random_init,
        device=device,
        threads=threads,
        batch_size=batch_size,
        workers=workers,
        cache=cache,
        output=output,
        overwrite=overwrite,
        yes=yes,
    )
    show(results, as_json)


def show(results: Results, as_json: bool) -> None:
    """Print results; under torchrun the first process alone does."""
    from fsbench.cli.show import print_results
    from fsbench.core.distributed import speaks

    if speaks():
        print_results(results, as_json=as_json)
