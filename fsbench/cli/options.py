"""Options shared by the commands, under the names that users of lm-eval, mteb and timm know."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the values of a file the defaults of this command.

    Raise UsageError for a file that cannot be read, UnknownName for a key that is no option.
    """
    if path is None:
        return None
    from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
    from fsbench.core.io import read_mapping

    parameters = {
        flag.lstrip("-").replace("-", "_"): parameter
        for parameter in context.command.params
        for flag in (*parameter.opts, parameter.name or "")
        if parameter.name not in {None, "config"}
    }
    names = sorted(name for name in parameters if len(name) > 1)
    try:
        values = read_mapping(path, ", ".join(names), as_written=True)
    except ValidationFailed as error:
        raise UsageError(error.message, fix=error.fix) from error
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        option = parameters.get(str(key).replace("-", "_"))
        if option is None:
            raise UnknownName(f"option in {path}", str(key), names)
        if option.name in defaults:
            raise UsageError(f"{path} sets {key} twice", fix="set every option once")
        defaults[str(option.name)] = check_value(context, option, str(key), value, path)
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def check_value(context: typer.Context, option: Any, key: str, value: Any, path: Path) -> Any:
    """Return the value of an option as text, or a list of texts, as on the command line.

    Raise UsageError for a value that the option does not take, and for code to run: a file may come
    from others, so py: references are allowed on the command line only.
    """
    from fsbench.core.errors import UsageError
    from fsbench.core.schema import find_code

    repeats = getattr(option, "multiple", False)
    values = value if repeats and isinstance(value, list) else [value]
    texts = [as_text(part) for part in values]
    parts = [part.strip() for text in texts for part in re.split("[,+]", text or "")]
    if code := find_code(parts):
        raise UsageError(
            f"{path} names code to run: {code}", fix="pass py: references on the command line"
        )
    try:
        if None in texts:
            raise typer.BadParameter("use a text, a number, true or false")
        option.process_value(context, texts if repeats else texts[0])
    except typer.BadParameter as error:
        raise UsageError(
            f"{path}: {key}: {error.message}", fix=f"see fsbench {context.info_name} --help"
        ) from error
    return texts if repeats else texts[0]


def as_text(value: Any) -> str | None:
    """Return a scalar of JSON, TOML or YAML as it would be typed; None for any other value."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        return None
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in str(value))
    return None if has_surrogates else str(value)


Model = Annotated[
    list[str],
    Option(
        "-m", "--model", help="Backbone reference: timm/NAME, run:DIR, FILE@ARCH, ...; repeatable."
    ),
]
Arch = Annotated[
    str | None,
    Option(help="Architecture of checkpoint files: a timm name, fsbench/NAME, py:MODULE:FUNCTION."),
]
RandomInit = Annotated[
    int | None, Option(help="Use random weights drawn with this seed (a control).")
]
Tasks = Annotated[
    list[str] | None,
    Option(
        "-t",
        "--tasks",
        "--task",
        help="Tasks: a data set (eurosat), a full id (eurosat:5w1s/linear@ibm), a group (cdfsl, "
        "cdfsl-small, transfer) or images of your own (folder:DIR, hf-hub:ORG/NAME?split=test). "
        "Comma-separated or repeated.",
    ),
]
Data = Annotated[
    list[str] | None,
    Option(
        help="Folder with the data sets, or NAME=DIR for one; repeatable. FSBENCH_DATA sets more, "
        "separated like PATH."
    ),
]
Cache = Annotated[
    Path | None, Option(envvar="FSBENCH_CACHE", help="Folder for cached features and images.")
]
Output = Annotated[Path, Option("-o", "--output", help="Folder for the results.")]
Device = Annotated[str, Option(help="Device: auto, cpu, cuda, cuda:N or mps.")]
Threads = Annotated[
    int | None, Option(min=1, max=1024, help="CPU threads of torch (recorded in results).")
]
BatchSize = Annotated[
    int | None, Option("-b", "--batch-size", min=2, max=2**14, help="Batch size.")
]
Workers = Annotated[
    int, Option("-j", "--workers", min=0, max=1024, help="Threads for decoding images.")
]
Seed = Annotated[int, Option(min=0, help="Seed for sampling episodes.")]
Limit = Annotated[
    int | None,
    Option(
        "--limit",
        "-L",
        min=1,
        help="Quick test: at most N episodes (probes: N epochs); results are marked 'limited'.",
    ),
]
Json = Annotated[bool, Option("--json", help="Print JSON on stdout instead of a table.")]
Yes = Annotated[bool, Option("--yes", help="Start work that is estimated to take over an hour.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Recompute and replace existing results.")]
Config = Annotated[
    Path | None,
    Option(
        "--config",
        "-C",
        callback=read_config,
        is_eager=True,
        help="YAML, TOML or JSON file of option values; the command line overrides it.",
    ),
]
Board = Annotated[Path, Option(help="Folder of the leaderboard.")]


def split(values: list[str] | None) -> list[str]:
    """Return repeated and comma-separated values as one list; folder:DIR may contain commas."""
    texts: list[str] = []
    for value in values or []:
        parts = [value] if value.startswith("folder:") else value.split(",")
        texts += [part.strip() for part in parts if part.strip()]
    return texts
