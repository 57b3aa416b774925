"""Cache of the rankings of a board: a Ranking in JSON, one file (cache_file.py) per table.

Its key is a digest of all that decides a ranking: the outcomes, the other arguments of
`rank_entries`, the code and the version of SciPy, whose import takes as long as reading a board of
fifty entries. A file of another key is ignored: the table is ranked again.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.statistics import Paired, Score
from leaderboard.ranking.tiers import Contenders, RankedEntry, Ranking, rank_entries
from leaderboard.submission.cache_file import (
    OtherKey,
    UnusableCache,
    compute_code_version,
    read_cache,
    write_cache,
)

FOLDER = "board-rankings"
"""Name below the cache folder, which `fsbench cache` lists."""


class RankingCache:
    """Rankings of a board folder; without a cache folder nothing is stored."""

    def __init__(
        self, board: Path = Path(), folder: Path | None = None, report: Reporter = SILENT
    ) -> None:
        self.board, self.report = board, report
        self.folder = folder / FOLDER if folder else None

    def rank(
        self,
        table: str,
        contenders: Contenders,
        columns: Sequence[str],
        excluded: Mapping[str, str],
        averaged: Mapping[str, Sequence[str]],
    ) -> Ranking:
        """Return what `rank_entries` does, from the cache if nothing that decides it changed.

        table: its name on the board.
        """
        compute = partial(rank_entries, contenders, columns, excluded=excluded, averaged=averaged)
        if self.folder is None:
            return compute()
        file = self.folder / digest_texts([str(self.board.resolve()), table, *columns])[:16]
        others = to_json([list(contenders), columns, excluded, averaged])
        key = digest_texts(chain(describe_code(), [others], describe_outcomes(contenders)))
        ranking = self.read(file, key)
        if ranking is None:
            ranking = compute()
            self.write(file, key, ranking)
        return ranking

    def read(self, file: Path, key: str) -> Ranking | None:
        """Return the stored ranking, None if there is none of this key; log a damaged file."""
        try:
            content = read_cache(file, key)
        except OtherKey:
            return None
        except UnusableCache as error:
            self.report.log(f"{file} {error}: the table is ranked again")
            return None
        return None if content is None else decode(content)

    def write(self, file: Path, key: str, ranking: Ranking) -> None:
        """Write a cache file; log an error, e.g. a full disk."""
        try:
            write_cache(file, key, to_json(ranking, inf_nan_mode="constants"))
        except OSError as error:
            self.report.log(f"the ranking is not cached: {file}: {error.strerror}")


NOT_CACHED = RankingCache()


def describe_code() -> Iterator[str]:
    """Yield what computes a ranking."""
    yield compute_code_version()
    yield version("scipy")


def describe_outcomes(contenders: Contenders) -> Iterator[str | bytes]:
    """Yield all of the outcomes that a ranking reads, of each seed where rows have several."""
    for name, by_column in contenders.items():
        for column, outcomes in by_column.items():
            for part in outcomes.seeds or (outcomes,):
                numbers = part.numbering
                if isinstance(numbers, bytes):
                    yield numbers
                    numbers = len(part.index)
                facts = (part.draws, part.out_of, part.right.dtype.char, numbers)
                yield to_json([name, column, len(outcomes.seeds), *facts]) + part.right.tobytes()


def digest_texts(texts: Iterable[str | bytes]) -> str:
    """Return the sha-256 of texts, each with its length, in hexadecimal."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode() if isinstance(text, str) else text
        digest.update(b"%d " % len(content))
        digest.update(content)
    return digest.hexdigest()


def decode(content: bytes) -> Ranking:
    """Return the ranking that `RankingCache.write` wrote."""
    fields: dict[str, Any] = from_json(content)
    return Ranking(
        columns=tuple(fields["columns"]),
        tiers=tuple(tuple(map(decode_entry, tier)) for tier in fields["tiers"]),
        unranked=tuple(map(decode_entry, fields["unranked"])),
        alpha=fields["alpha"],
        apart=tuple(tuple(map(decode_entry, tier)) for tier in fields["apart"]),
    )


def decode_entry(fields: dict[str, Any]) -> RankedEntry:
    scores, averages = (
        {name: Score(*score) for name, score in fields[part].items()}
        for part in ("scores", "averages")
    )
    behind = Paired(*fields["behind"]) if fields["behind"] else None
    others = {"missing": tuple(fields["missing"]), "behind": behind}
    return RankedEntry(**fields | others | {"scores": scores, "averages": averages})
