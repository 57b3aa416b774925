"""Options shared by the commands, under the names that users of lm-eval, mteb and timm know."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the file's values the defaults of this command. Raises UsageError on an unknown key."""
    if path is None:
        return None
    import yaml

    from fsbench.errors import UnknownName, UsageError

    try:
        values = yaml.safe_load(path.read_text(encoding="utf8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(
            f"cannot read {path}: {error}", fix="give a YAML file of options"
        ) from error
    if not isinstance(values, dict):
        raise UsageError(f"{path} is no mapping", fix="write one `option: value` a line")
    known = {
        flag.lstrip("-").replace("-", "_"): parameter
        for parameter in context.command.params
        for flag in (*parameter.opts, parameter.name or "")
    }
    defaults = {}
    for key, value in values.items():
        option = known.get(str(key).replace("-", "_"))
        if option is None or option.name is None:
            raise UnknownName(f"option in {path}", str(key), (n for n in known if len(n) > 1))
        if option.name == "model":
            refuse_code(value, path)
        many = getattr(option, "multiple", False) and not isinstance(value, list)
        defaults[option.name] = [value] if many else value
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def refuse_code(refs: object, path: Path) -> None:
    """A file may come from others, so it may not name code to run: py: is for the command line."""
    from fsbench.errors import UsageError

    named = [ref for ref in (refs if isinstance(refs, list) else [refs]) if "py:" in str(ref)]
    if named:
        raise UsageError(
            f"{path} names code to run: {named[0]}", fix="give py: references with -m instead"
        )


Model = Annotated[
    list[str],
    typer.Option("-m", "--model", help="Backbone reference, repeatable: timm/NAME, run:DIR, FILE."),
]
Arch = Annotated[
    str | None,
    typer.Option("--arch", help="Architecture of a checkpoint file: a timm name or fsbench/NAME."),
]
RandomInit = Annotated[
    int | None,
    typer.Option("--random-init", help="Use random weights drawn with this seed (the control)."),
]
Tasks = Annotated[
    list[str] | None,
    typer.Option(
        "-t",
        "--tasks",
        "--task",
        help="As eurosat, eurosat:5w1s/linear@ibm or cdfsl; repeatable, or by commas.",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option("--data", help="Folder with the data sets, or NAME=DIR for one; repeatable."),
]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", envvar="FSBENCH_CACHE", help="Folder for features and image caches."),
]
Output = Annotated[Path, typer.Option("-o", "--output", help="Folder for the results.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="CPU threads of torch; recorded.")
]
BatchSize = Annotated[
    int | None, typer.Option("-b", "--batch-size", min=2, help="Images a forward pass.")
]
Workers = Annotated[int, typer.Option("-j", "--workers", min=0, help="Image decoding threads.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the EpisodeSpec or the recipe.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", "-L", min=1, help="Only N episodes a cell: a marked smoke run."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout instead of a table.")]
Yes = Annotated[bool, typer.Option("--yes", help="Start runs estimated at over an hour.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Recompute and replace results.")]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-C",
        callback=read_config,
        is_eager=True,
        help="YAML file whose keys are option names; the command line wins.",
    ),
]
Board = Annotated[Path, typer.Option("--board", help="Folder of the leaderboard.")]


def split(values: list[str] | None) -> list[str]:
    """Repeated and comma-separated values as one list; commas inside a path stay with folder:."""
    found: list[str] = []
    for value in values or []:
        parts = [value] if value.startswith("folder:") else value.split(",")
        found += [part.strip() for part in parts if part.strip()]
    return found
