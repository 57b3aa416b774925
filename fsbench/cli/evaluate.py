"""`fsbench benchmark`, `episodic` and `probe`: evaluate frozen backbones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsbench.cli import options

if TYPE_CHECKING:
    from fsbench.schema import Result

Shots = Annotated[
    list[str] | None,
    typer.Option("--shots", "--n-shot", help="Shots, e.g. 1,5; default 1,5,20,50."),
]
Way = Annotated[int | None, typer.Option("--way", "--n-way", min=2, help="Classes an episode.")]
Adapt = Annotated[list[str] | None, typer.Option("--adapt", help="linear (default).")]
Protocol = Annotated[
    str | None, typer.Option("--protocol", help="ibm (all images) or startup (labeled_80).")
]
Episodes = Annotated[
    int, typer.Option("--episodes", "--n-tasks", min=1, help="Episodes a cell; 600 is official.")
]
InputSize = Annotated[
    str, typer.Option("--input-size", help="Side in px, or native: the size it was trained at.")
]
Shard = Annotated[
    str | None, typer.Option("--shard", help="i/n: only this part; merge them later.")
]
Name = Annotated[
    str | None, typer.Option("--name", help="Name of the model in results; default from -m.")
]

DEFAULT_OUTPUT = Path("results")


def register(app: typer.Typer) -> None:
    whole = "Linear probe and CD-FSL episodes of one or more backbones: the whole benchmark."
    app.command("benchmark", help=whole)(command(("probe", "episodic")))
    some = "Few-shot episodes on their own: way, shots, adaptation and targets as you choose."
    app.command("episodic", help=some)(command(("episodic",)))
    app.command("probe")(probe)


def command(kinds: tuple[str, ...]) -> Callable[..., None]:
    """A command that evaluates these kinds of tasks, with every option of the benchmark."""

    def evaluate(
        model: options.Model,
        tasks: options.Tasks = None,
        shots: Shots = None,
        way: Way = None,
        adapt: Adapt = None,
        protocol: Protocol = None,
        episodes: Episodes = 600,
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
        shard: Shard = None,
        overwrite: options.Overwrite = False,
        yes: options.Yes = False,
        as_json: options.Json = False,
        config: options.Config = None,
    ) -> None:
        given = dict(locals())
        given.pop("kinds")
        run(kinds, given)

    return evaluate


def probe(
    model: options.Model,
    tasks: options.Tasks = None,
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
    """Linear probe of the frozen features on whole data sets."""
    run(("probe",), dict(locals()))


def run(kinds: tuple[str, ...], given: dict[str, Any]) -> None:
    """Evaluate, then print one table (or JSON) of the cells asked for."""
    from fsbench.cli.show import print_results
    from fsbench.api.evaluate import evaluate

    results = evaluate(**request(kinds, given))
    print_results(results, as_json=given["as_json"])
