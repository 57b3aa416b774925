"""`fsbench cache`: list and clear the cache folder."""

import json
import shutil
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from typer import Argument, Option

from fsbench.cli import console, options
from fsbench.core.errors import UnknownName

KINDS = {
    "features": "features of a backbone on a data set",
    "sources": "decoded source data sets",
    "datasets": "tables of the Hugging Face library",
    "hashes": "content hashes of image files",
}

Kinds = Annotated[list[str] | None, Argument(help=f"Kinds: {', '.join(KINDS)}; all by default.")]


class CachedFile(NamedTuple):
    """One file or folder of the cache; size in bytes."""

    kind: str
    path: Path
    what: str
    size: int


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="List or clear cached features and images.", no_args_is_help=True)
    group.command("ls")(ls)
    group.command("clear")(clear)
    app.add_typer(group, name="cache")


def ls(kinds: Kinds = None, cache: options.Cache = None, as_json: options.Json = False) -> None:
    """List the entries of the cache folder with their sizes."""
    from fsbench.core.io import cache_folder

    folder = cache_folder(cache)
    cached = entries(folder, kinds)
    records = [{**e._asdict(), "path": str(e.path)} for e in cached]
    rows = [[e.kind, e.path.name[:40], e.what, f"{e.size / 1e6:.1f} MB"] for e in cached]
    title = f"{folder}: {sum(e.size for e in cached) / 1e6:.1f} MB"
    console.emit(as_json, records, title, ["kind", "entry", "of", "size"], rows)
    if not cached and not as_json:
        console.log("nothing cached")


def clear(
    kinds: Kinds = None,
    cache: options.Cache = None,
    yes: bool = Option(False, "--yes", help="Delete without asking."),
) -> None:
    """Delete entries of the cache folder; fsbench recomputes them when needed."""
    from fsbench.core.io import cache_folder

    folder = cache_folder(cache)
    cached = entries(folder, kinds)
    what = f"{len(cached)} entries, {sum(e.size for e in cached) / 1e6:.1f} MB, in {folder}"
    if not cached:
        console.log(f"nothing to clear in {folder}")
        return
    if not yes:
        typer.confirm(f"Delete {what}?", abort=True, err=True)
    in_use = [entry for entry in cached if not delete(entry.path)]
    for entry in in_use:
        console.log(f"kept {entry.path}: another process uses it")
    console.log(f"cleared {what}" + (f", but {len(in_use)}" if in_use else ""))


def entries(folder: Path, kinds: list[str] | None) -> list[CachedFile]:
    """Return the entries of these kinds, sorted. Raise UnknownName for an unknown kind."""
    for kind in kinds or []:
        if kind not in KINDS:
            raise UnknownName("kind of cache", kind, KINDS)
    cached = []
    for kind in kinds or KINDS:
        for path in (p for p in folder.glob(f"{kind}/*") if p.suffix != ".lock"):
            size = sum(f.stat().st_size for f in (path, *path.rglob("*")) if f.is_file())
            cached.append(CachedFile(kind, path, describe(kind, path), size))
    return sorted(cached, key=lambda e: (e.kind, e.what, e.path.name))


def describe(kind: str, path: Path) -> str:
    """Return the model and data set of cached features, or what such entries are."""
    try:
        meta = json.loads((path / "meta.json").read_text(encoding="utf8"))
        return f"{meta['model']} on {meta['dataset']}, {meta['image']['input_size']} px"
    except (OSError, ValueError, LookupError, TypeError):
        return "unfinished" if path.name.endswith(".partial") else KINDS[kind]


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
