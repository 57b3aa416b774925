"""`fsbench cache`: list and clear the cache folder."""

import shutil
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from fsbench.api.options import Machine
from fsbench.cli import console, options
from fsbench.core.errors import UnknownName
from fsbench.core.progress import format_count

KINDS = {
    "features": "features of backbones on data sets",
    "sources": "decoded source data sets",
    "datasets": "tables of the Hugging Face library",
    "hashes": "content hashes of image files",
}

Kinds = Annotated[list[str] | None, Argument(help=f"Kinds: {', '.join(KINDS)}; all by default.")]


@options.command("cache ls", Machine, "cache")
def ls(machine: Machine, as_json: options.Json = False) -> None:
    """List what the cache folder holds, with its size."""
    from fsbench.core.io import cache_folder

    folder = cache_folder(machine.cache)
    paths = {kind: list_entries(folder, [kind]) for kind in KINDS}
    sizes = {kind: sum(map(measure, paths[kind])) for kind in KINDS}
    records = [{"kind": k, "entries": len(paths[k]), "bytes": sizes[k]} for k in KINDS]
    rows = [[k, KINDS[k], len(paths[k]), f"{sizes[k] / 1e6:.1f} MB"] for k in KINDS]
    console.emit(as_json, records, str(folder), ["kind", "of", "entries", "size"], rows)


@options.command("cache clear", Machine, "cache")
def clear(
    machine: Machine,
    kinds: Kinds = None,
    yes: bool = Option(False, "--yes", help="Delete without asking."),
) -> None:
    """Delete entries of the cache folder; fsbench recomputes them when needed."""
    from fsbench.core.io import cache_folder

    folder = cache_folder(machine.cache)
    paths = list_entries(folder, kinds or list(KINDS))
    size = sum(map(measure, paths)) / 1e6
    what = f"{format_count(len(paths), 'entry')}, {size:.1f} MB, in {folder}"
    if not paths:
        console.log(f"nothing to clear in {folder}")
        return
    if not yes:
        typer.confirm(f"Delete {what}?", abort=True, err=True)
    in_use = [path for path in paths if not delete(path)]
    for path in in_use:
        console.log(f"kept {path}: another process uses it")
    console.log(f"cleared {what}" + (f", but {len(in_use)}" if in_use else ""))


def list_entries(folder: Path, kinds: list[str]) -> list[Path]:
    """Return the entries of these kinds. Raise UnknownName for an unknown kind."""
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind of cache", kind, KINDS)
    return sorted(p for kind in kinds for p in folder.glob(f"{kind}/*") if p.suffix != ".lock")


def measure(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())


def delete(path: Path) -> bool:
    """Delete one entry under its lock; return False if another process holds the lock."""
    from filelock import FileLock, Timeout

    lock = path.with_name(path.name.removesuffix(".partial") + ".lock")
    try:
        with FileLock(lock, timeout=0):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except Timeout:
        return False
    lock.unlink(missing_ok=True)
    return True
