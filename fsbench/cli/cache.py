"""`fsbench cache`: what the cache folder holds."""

import shutil

from typer import Option

from fsbench.api.options import Machine
from fsbench.cli import console, options

KINDS = {
    "features": "features of backbones on data sets",
    "images": "decoded target data sets",
    "sources": "decoded source data sets",
    "datasets": "tables of the Hugging Face library",
    "hashes": "content hashes of image files",
}


@options.command("cache", Machine, "cache", "cache_size")
def cache(
    machine: Machine,
    clear: bool = Option(False, "--clear", help="Delete all of it; no other process may use it."),
    as_json: options.Json = False,
) -> None:
    """List what the cache folder holds, with its size; fsbench makes again what is deleted."""
    from fsbench.core.io import cache_folder, limit_cache

    folder = cache_folder(machine.cache)
    records, rows = [], []
    for kind, what in KINDS.items():
        entries = [path for path in folder.glob(f"{kind}/*") if path.suffix != ".lock"]
        files = [file for file in (folder / kind).rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
        records.append({"kind": kind, "entries": len(entries), "bytes": size})
        rows.append((kind, what, len(entries), f"{size / 1e6:.1f} MB"))
        if clear:
            shutil.rmtree(folder / kind, ignore_errors=True)
    limit = limit_cache(folder, machine.cache_size)
    about = f"{folder}; features and images take at most {limit / 1e9:.0f} GB (--cache-size)"
    console.emit(as_json, records, about, ("kind", "of", "entries", "size"), rows)
