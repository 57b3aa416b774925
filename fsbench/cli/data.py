"""`fsbench data` and `fsbench episodes`: data sets, and the episodes drawn from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from fsbench.api.options import Machine, TaskOptions
from fsbench.cli import console, options
from fsbench.core.errors import DataError
from fsbench.core.options import split_values
from fsbench.core.progress import format_count

Name = Annotated[str, Argument(help="Data set name or alias, folder:DIR or hf-hub:ORG/NAME.")]
TaskText = Annotated[str, Argument(help="One task, e.g. eurosat:5w1s@ibm.")]
SHOWN_OTHERWISE = {"classes", "pre_resize", "group_pattern", "archives", "startup"}
"""Facts that `data show` gives in another form, or leaves out."""


@dataclass(frozen=True)
class DrawOptions(Machine, TaskOptions):
    """Options of the commands that draw episodes."""


@options.command("data ls", Machine, "data", "cache")
def ls(
    machine: Machine,
    names: list[str] | None = Argument(None, help="Data set names or aliases; all by default."),
    as_json: options.Json = False,
) -> None:
    """List data sets, a line each: images found of the official ones, state, how to get it."""
    from fsbench.data import resolve_alias
    from fsbench.data.catalog import all_facts

    facts = all_facts()
    chosen = map(resolve_alias, names or facts)
    rows = [describe_dataset(facts[name], machine) for name in chosen]
    columns = ("name", "classes", "images found", "state", "get it")
    table = [
        (r["name"], r["classes"], f"{r['present']:,} of {r['images']:,}", r["state"], r["get"])
        for r in rows
    ]
    console.emit(as_json, rows, "data sets", columns, table)


def describe_dataset(facts: Any, machine: Machine) -> dict[str, Any]:
    """Return one data set as `data ls` lists it; images are counted and not opened."""
    from fsbench.data.verification import verify_dataset

    roots = machine.roots
    folder = None if facts.domain == "toy" else roots.find(facts)
    present, state, get = 0, "missing", f"fsbench data download {facts.name}"
    if facts.domain == "toy":
        present, state, get = facts.n_images, "generated", "nothing to fetch"
    elif folder:
        try:
            check = verify_dataset(facts.name, roots, machine.cache_folder, decode=False)
            state = "complete" if check.complete else "subset"
            present = facts.n_images if check.complete else sum(n for n, _ in check.counts)
        except DataError:
            state, get = "refused", f"fsbench data verify {facts.name}"
    row = {"name": facts.name, "domain": facts.domain, "classes": len(facts.classes)}
    row |= {"images": facts.n_images, "present": present, "state": state}
    return row | {"found": str(folder or ""), "get": get}


@options.command("data show", Machine, "data")
def show(machine: Machine, name: Name, as_json: options.Json = False) -> None:
    """Show all facts of a data set: counts, layout, licence, citation, and addresses."""
    from fsbench.data import resolve_alias
    from fsbench.data.catalog import all_facts

    facts = all_facts()[resolve_alias(name)]
    row = {
        **facts.model_dump(mode="json", exclude=SHOWN_OTHERWISE),
        "classes": len(facts.classes),
        "images": facts.n_images,
        "images_per_class": dict(zip(facts.classes, facts.images_per_class, strict=False)),
        "split": dict(zip(("train", "test"), facts.split or (), strict=False)),
        "groups": facts.groups or "not known",
        "addresses": [address for file in facts.archives for address in (file.url, *file.mirrors)],
        "hashes": [file.known_hash for file in facts.archives],
        "found": "generated" if facts.domain == "toy" else str(machine.roots.find(facts) or ""),
    }
    table = [(fact, value) for fact, value in row.items() if fact != "steps"]
    console.emit(as_json, row, facts.title, ("fact", "value"), table)
    if facts.steps and not as_json:
        typer.echo(facts.steps)


@options.command("data verify", Machine, "data", "cache")
def verify(machine: Machine, name: Name, as_json: options.Json = False) -> None:
    """Check the counts and open every image; exit 3 and list corrupt files or wrong counts."""
    from fsbench.data.verification import verify_dataset

    check = verify_dataset(name, machine.roots, machine.cache_folder, console.reporter())
    counted = zip(check.facts.classes, check.counts, strict=True)
    records = [
        {"id": class_id, "class": name, "images": images, "official": official}
        for class_id, (name, (images, official)) in enumerate(counted)
    ]
    console.emit(as_json, records, f"{check.facts.name}: {check.images} images")
    for note in check.notes:
        typer.echo(note, err=True)
    if problem := check.problem():
        raise problem
    counts = "custom images, without official counts" if check.custom else "the counts are official"
    typer.echo(f"{check.facts.name}: every image opens, {counts}", err=True)


@options.command("data download", Machine, "data", "cache")
def download(
    machine: Machine,
    name: str = Argument(help="Data set name or alias, or a group: cdfsl, cdfsl-small, transfer."),
) -> None:
    """Download, unpack and verify a data set, or print the steps that are to be done by hand.

    Run again to resume a broken transfer; complete data sets are left alone.
    """
    from fsbench.data import DataRoots
    from fsbench.data.download import acquire_datasets

    roots = DataRoots.parse([*map(str, split_values(machine.data))], must_exist=False)
    missing = []
    acquired = acquire_datasets(name, roots, machine.cache_folder, console.reporter())
    for facts, folder, note in acquired:
        if folder is not None:
            state = note or "the official images"
            console.log(f"{facts.name} is in {folder}, verified: {state}")
        if folder is None or note:
            console.log(facts.steps or facts.download)
        if folder is None:
            missing.append(facts.name)
    if missing:
        raise DataError(f"no direct download: {', '.join(missing)}", fix="follow the steps above")


@options.command("episodes export", DrawOptions, "data", "seed", "episodes")
def export(
    chosen: DrawOptions,
    task: TaskText,
    output: Path = Option(..., "-o", "--output", help="JSON Lines file to write."),
) -> None:
    """Write one JSON object per episode: class ids, image paths relative to the data set."""
    from fsbench.data.episodes import load_episodes, parse_episodic_task, write_episodes

    dataset, sampler = load_episodes(parse_episodic_task(task), chosen.roots, chosen.seed)
    write_episodes(output, sampler, dataset, chosen.episodes)
    digest = sampler.manifest_hash(range(chosen.episodes))
    written = format_count(chosen.episodes, "episode")
    console.log(f"wrote {written} to {output}; manifest {digest}")


@options.command("episodes show", DrawOptions, "data", "seed", "n_query", "episodes")
def show_episode(
    chosen: DrawOptions,
    task: TaskText,
    index: int = Option(0, "-i", "--index", help="Number of the episode."),
    results: Path | None = Option(None, help="Results folder: its wrong answers are marked."),
    output: Path = Option(Path("episode.png"), "-o", "--output", help="A .png, .svg or .pdf file."),
) -> None:
    """Draw the images of an episode, with --results also what heads take the queries for."""
    from fsbench.api.episodes import Episodes
    from fsbench.core.plotting import write_figure

    drawn = {name: getattr(chosen, name) for name in ("data", "seed", "n_query", "episodes")}
    episodes = Episodes(task, input_size=128, **drawn)
    write_figure(episodes.plot(index, results), output)
    console.log(f"wrote {output}")


@options.command("episodes hash", DrawOptions, "data", "seed", "episodes")
def print_hash(chosen: DrawOptions, task: TaskText) -> None:
    """Print the manifest hash of the first episodes: equal hashes mean equal episodes."""
    from fsbench.data.episodes import make_sampler, parse_episodic_task

    roots = chosen.roots if chosen.data else None
    sampler = make_sampler(parse_episodic_task(task), roots, chosen.seed)
    typer.echo(sampler.manifest_hash(range(chosen.episodes)))
