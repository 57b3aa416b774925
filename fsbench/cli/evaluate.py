"""`fsbench benchmark`, `episodic` and `probe`: evaluate frozen backbones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fsbench.cli import options

if TYPE_CHECKING:
    from fsbench.api.evaluate import Models
    from fsbench.api.request import EvaluationRequest
    from fsbench.core.tasks import Kind

Shots = Annotated[
    list[str] | None,
    typer.Option("--shots", "--n-shot", help="Shots, e.g. 1,5; default 1,5,20,50."),
]
Way = Annotated[int | None, typer.Option("--way", "--n-way", min=2, help="Classes an episode.")]
Adapt = Annotated[
    list[str] | None,
    typer.Option(
        "--adapt",
        help="linear (default), another head (fsbench ls heads), or affine, which takes long.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Setting, repeatable: of a head (ridge.lam=10), of probes (probe.views=8)."
    ),
]
BnMode = Annotated[
    str,
    typer.Option("--bn-mode", help="BatchNorm in affine tuning: eval (source statistics), train."),
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
        "--episodes", "--n-tasks", min=1, max=100_000, help="Episodes a cell; 600 is official."
    ),
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


def command(kinds: tuple[Kind, ...]) -> Callable[..., None]:
    """A command that evaluates these kinds of tasks, with every option of the benchmark."""

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
        given = dict(locals())
        given.pop("kinds")
        run(kinds, given)

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
    """Linear probe of the frozen features on whole data sets; DATASET:knn is the k-NN probe."""
    run(("probe",), dict(locals()))


def run(kinds: tuple[Kind, ...], given: dict[str, Any]) -> None:
    """Evaluate, then print one table (or JSON) of the cells asked for."""
    from fsbench.api.distributed import evaluate
    from fsbench.api.machine import Machine, cache_folder
    from fsbench.cli.console import reporter
    from fsbench.cli.show import print_results
    from fsbench.core.distributed import speaks
    from fsbench.core.progress import SILENT

    machine = Machine(
        device=given["device"],
        threads=given["threads"],
        workers=given["workers"],
        batch_size=given["batch_size"],
        cache=cache_folder(given["cache"]),
    )
    results = evaluate(
        models(given),
        request(kinds, given),
        roots=options.split(given["data"]),
        output=given["output"],
        machine=machine,
        yes=given["yes"],
        report=reporter() if speaks() else SILENT,
    )
    if speaks():
        print_results(results, as_json=given["as_json"])


def models(given: dict[str, Any]) -> Models:
    from fsbench.api.evaluate import Models
    from fsbench.core.errors import UsageError

    refs, name = options.split(given["model"]), given.get("name")
    if name and len(refs) > 1:
        raise UsageError(f"--name {name} for {len(refs)} models", fix="name one model at a time")
    names = (name,) if name else ()
    return Models(tuple(refs), given["arch"], given["random_init"], names)


def request(kinds: tuple[Kind, ...], given: dict[str, Any]) -> EvaluationRequest:
    from fsbench.api.request import (
        EvaluationRequest,
        parse_head_settings,
        parse_input_size,
        parse_probe_settings,
        parse_shard,
        parse_tasks,
    )
    from fsbench.core.tasks import Options, integers

    shots = given.get("shots")
    wanted = Options(
        kinds=kinds,
        shots=integers(shots, "--shots") if shots else None,
        way=given.get("way"),
        heads=options.split(given.get("adapt")) or None,
        protocol=given.get("protocol"),
    )
    return EvaluationRequest(
        tasks=parse_tasks(options.split(given["tasks"]), wanted),
        input_size=parse_input_size(given["input_size"]),
        episodes=given.get("episodes", 600),
        limit=given["limit"],
        seed=given["seed"],
        shard=parse_shard(given.get("shard")),
        overwrite=given["overwrite"],
        bn_mode=given.get("bn_mode", "eval"),
        settings=parse_head_settings(given["assignments"] or ()),
        probing=parse_probe_settings(given["assignments"] or ()),
    )
