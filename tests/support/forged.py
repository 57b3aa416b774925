"""What a careful forger can do to an entry: change it and make every digest below fit again."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from fsbench.core.records import EpisodeRecords, Records
from fsbench.core.schema import Provenance, Result
from fsbench.results import assembly, outcomes
from fsbench.results.entry import ENTRY_FILE, EntryFile, Loaded, read_entry, write_entry

Pair = tuple[Result, Records]


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the content of entry.json and nothing else; fsbench lays out what is valid."""
    path = folder / ENTRY_FILE
    content = json.loads(path.read_text(encoding="utf8"))
    change(content)
    text = json.dumps(content)
    with suppress(ValidationError):
        text = EntryFile.model_validate_json(text).to_text()
    path.write_text(text, encoding="utf8")


def set_value(content: Any, path: str | Sequence[str], value: object) -> None:
    """Change a value of a nested record, named as e.g. results.0.score.mean, or by keys."""
    *outer, last = path.split(".") if isinstance(path, str) else path
    for key in outer:
        content = content[int(key) if isinstance(content, list) else key]
    content[int(last) if isinstance(content, list) else last] = value


def put(path: str | Sequence[str], value: object) -> Callable[[Path], None]:
    """Return a change of a value of entry.json."""
    return lambda folder: edit(folder, lambda content: set_value(content, path, value))


def rewrite(folder: Path, change: Callable[[Loaded], Pair | None], **facts: Any) -> None:
    """Write an entry anew with other results, None for one to leave out, and other facts."""
    entry = read_entry(folder)
    changed = [pair for loaded in entry.loaded if (pair := change(loaded))]
    names = ("declaration", "submitted", "fsbench", "key")
    facts = {name: getattr(entry.file, name) for name in names} | facts
    controls = [entry.file.models[i].identity for i in entry.file.controls]
    write_entry(folder, changed, controls, outcomes.SMALL, **facts)


def flipped(n: int, episode: int = 0) -> Callable[[EpisodeRecords], EpisodeRecords]:
    """Changes the outcomes of the first n queries of an episode; dense counts still fit."""

    def change(records: EpisodeRecords) -> EpisodeRecords:
        correct = records.correct.copy()
        row = correct[episode].reshape(-1)
        row[:n] ^= True
        dense, total = records.dense_correct, records.dense_total
        if dense is not None and total is not None:
            right = correct.sum(-1)
            dense = np.clip(dense, right, total - (correct.shape[-1] - right))
        return replace(records, correct=correct, dense_correct=dense)

    return change


def forge(
    entry: Path,
    pattern: str,
    change: Callable[[EpisodeRecords], EpisodeRecords] = lambda records: records,
    **environment: object,
) -> None:
    """Other records or provenance for the first result whose column has this text."""
    done = []

    def forge_first(loaded: Loaded) -> Pair:
        result, records = loaded.result, loaded.records
        if done or pattern not in str(result.column):
            return result, records
        done.append(result)
        assert isinstance(records, EpisodeRecords)
        made = Provenance.model_validate(result.provenance.model_dump() | environment)
        limited = "limited" in result.flags
        facts = (result.backbone, result.dataset, result.spec)
        return assembly.build_result(*facts, changed := change(records), limited, made), changed

    rewrite(entry, forge_first)
    assert done, f"{entry} has no {pattern}"
