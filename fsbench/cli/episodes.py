"""`fsbench episodes export|hash`: the episodes of a task, to replay elsewhere and to compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import options

if TYPE_CHECKING:
    from fsbench.core.tasks import TaskId

TaskText = Annotated[str, typer.Argument(help="One cell, as eurosat:5w1s@ibm.")]
Episodes = Annotated[int, typer.Option("--episodes", "--n-tasks", min=1, help="How many.")]
File = Annotated[Path, typer.Option("-o", "--output", help="JSON Lines file to write.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Episodes: export them, or hash them.", no_args_is_help=True)
    group.command("export")(export)
    group.command("hash")(hash_)
    app.add_typer(group, name="episodes")


def export(
    task: TaskText,
    output: File,
    data: options.Data = None,
    episodes: Episodes = 600,
    seed: options.Seed = 0,
) -> None:
    """Write the images of each episode, one JSON object a line, paths relative to the data set."""
    from fsbench.cli.console import log
    from fsbench.data import DataRoots
    from fsbench.data.manifest import load_episodes, write_episodes

    dataset, sampler = load_episodes(one(task), DataRoots.parse(data or []), seed)
    write_episodes(output, sampler, dataset, episodes)
    log(f"wrote {episodes} episodes to {output}; manifest {sampler.manifest_hash(range(episodes))}")


def hash_(
    task: TaskText,
    data: options.Data = None,
    episodes: Episodes = 600,
    seed: options.Seed = 0,
) -> None:
    """Print the manifest hash of the first episodes: equal hashes mean equal episodes."""
    from fsbench.data import DataRoots
    from fsbench.data.manifest import make_sampler

    sampler = make_sampler(one(task), DataRoots.parse(data) if data else None, seed)
    typer.echo(sampler.manifest_hash(range(episodes)))


def one(text: str) -> TaskId:
    """The one episodic cell that an id names. Raises UsageError if it names several."""
    from fsbench import data
    from fsbench.core import tasks
    from fsbench.core.errors import UsageError

    found = tasks.resolve(
        [text], data.resolve_alias, data.dataset_groups(), tasks.Options(kinds=("episodic",))
    )
    if len(found) != 1:
        raise UsageError(
            f"'{text}' names {len(found)} cells",
            fix=f"name one, e.g. {found[0]}",
        )
    return found[0]
