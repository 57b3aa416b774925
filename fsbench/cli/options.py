"""Options shared by the commands, under the names that users of lm-eval, mteb and timm know."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

EVALUATE, PRETRAIN, LEADERBOARD = "Evaluate", "Pretrain", "Leaderboard"
DATA, TOOLS = "Data", "Tools"
"""Panels of `fsbench --help`."""


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the file's values the defaults of this command.

    Raises UsageError for a file that cannot be read, UnknownName for a key that is no option.
    """
    if path is None:
        return None
    from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
    from fsbench.core.markup import read_mapping

    known = {
        flag.lstrip("-").replace("-", "_"): parameter
        for parameter in context.command.params
        for flag in (*parameter.opts, parameter.name or "")
    }
    names = sorted(name for name in known if len(name) > 1 and known[name].name != "config")
    try:
        values = read_mapping(path, ", ".join(names), as_written=True)
    except ValidationFailed as error:
        raise UsageError(error.message, fix=error.fix) from error
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        option = known.get(str(key).replace("-", "_"))
        if option is None or option.name in {None, "config"}:
            raise UnknownName(f"option in {path}", str(key), names)
        if option.name in defaults:
            raise UsageError(f"{path} sets {key} twice", fix="set every option once")
        defaults[str(option.name)] = checked(context, option, str(key), value, path)
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def checked(context: typer.Context, option: Any, key: str, value: Any, path: Path) -> Any:
    """What a file says of an option, as the command line would say it: text, or a list of it.

    Raises UsageError for what the option does not take, and for code to run: a file may come from
    others, so py: is for the command line.
    """
    from fsbench.core.errors import UsageError

    many = getattr(option, "multiple", False)
    texts = [as_text(part) for part in (value if many and isinstance(value, list) else [value])]
    parts = [part.strip() for text in texts for part in (text or "").split(",")]
    if code := next((part for part in parts if part.startswith("py:")), None):
        raise UsageError(
            f"{path} names code to run: {code}", fix="give py: references with -m instead"
        )
    try:
        if None in texts:
            raise typer.BadParameter("give a text, a number, true or false")
        option.process_value(context, texts if many else texts[0])
    except typer.BadParameter as error:
        raise UsageError(
            f"{path}: {key}: {error.message}", fix=f"see fsbench {context.info_name} --help"
        ) from error
    return texts if many else texts[0]


def as_text(value: Any) -> str | None:
    """A scalar of JSON, TOML or YAML as it would be typed; None for what nobody types."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        return None
    halves = any("\ud800" <= character <= "\udfff" for character in str(value))
    return None if halves else str(value)


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
    int | None, typer.Option("--threads", min=1, max=1024, help="CPU threads of torch; recorded.")
]
BatchSize = Annotated[
    int | None, typer.Option("-b", "--batch-size", min=2, max=2**14, help="Images a forward pass.")
]
Workers = Annotated[
    int, typer.Option("-j", "--workers", min=0, max=1024, help="Image decoding threads.")
]
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
        help="YAML, TOML or JSON file whose keys are option names; the command line wins.",
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
