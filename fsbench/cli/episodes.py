"""`fsbench episodes export|hash`: the episodes of a task, to run them elsewhere or compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import options

TaskText = Annotated[str, typer.Argument(help="One task, e.g. eurosat:5w1s@ibm.")]
Episodes = Annotated[int, typer.Option("--episodes", "--n-tasks", min=1, help="Episodes.")]
File = Annotated[Path, typer.Option("-o", "--output", help="JSON Lines file to write.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Export the episodes of a task, or hash them.", no_args_is_help=True)
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
    """Write one JSON object per episode: class ids, image paths relative to the data set."""
    from fsbench.api.episodes import parse_episodic_task
    from fsbench.cli.console import log
    from fsbench.data import DataRoots
    from fsbench.data.manifest import load_episodes, write_episodes

    dataset, sampler = load_episodes(parse_episodic_task(task), DataRoots.parse(data or []), seed)
    write_episodes(output, sampler, dataset, episodes)
    log(f"wrote {episodes} episodes to {output}; manifest {sampler.manifest_hash(range(episodes))}")


def hash_(
    task: TaskText,
    data: options.Data = None,
    episodes: Episodes = 600,
    seed: options.Seed = 0,
) -> None:
    """Print the manifest hash of the first episodes: equal hashes mean equal episodes."""
    from fsbench.api.episodes import parse_episodic_task
    from fsbench.data import DataRoots
    from fsbench.data.manifest import make_sampler

    sampler = make_sampler(parse_episodic_task(task), DataRoots.parse(data) if data else None, seed)
    typer.echo(sampler.manifest_hash(range(episodes)))
