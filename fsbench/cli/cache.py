"""`fsbench cache`: what the cache folder holds."""

import shutil

from typer import Option

from fsbench.api.options import Machine
from fsbench.cli import console, options

KINDS = {
    "features": "features of backbones on data sets",
    "sources": "decoded source data sets",
    "datasets": "tables of the Hugging Face library",
    "hashes": "content hashes of image files",
}


@options.command("cache", Machine, "cache")
def cache(
    machine: Machine,
    clear: bool = Option(False, "--clear", help="Delete all of it; no other process may use it."),
    as_json: options.Json = False,
) -> None:
    """List what the cache folder holds, with its size; fsbench makes again what is deleted."""
    from fsbench.core.io import cache_folder

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
    console.emit(as_json, records, str(folder), ("kind", "of", "entries", "size"), rows)
