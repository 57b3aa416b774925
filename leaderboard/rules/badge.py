"""Rules that a badge must satisfy: everything in it that follows from the entry is recomputed.

They show that `fsbench leaderboard verify` could have written the badge. Whether it did is what a
signature says (leaderboard/signatures.py). A badge of an earlier state of the entry counts for
nothing, so that only its date and its entry are checked.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodicSpec
from fsbench.results.entry import Entry, Loaded
from fsbench.results.verification import RuleList
from leaderboard.badges import (
    FEWEST,
    Badge,
    ColumnCheck,
    draw_episodes,
    list_differences,
)

BADGE_RULES = RuleList()


@BADGE_RULES.add("badge", "remove the badge, or verify the entry again")
def check_badge(badge: Badge, entry: Entry) -> Iterator[str]:
    """Check entry and date of a badge; of the present state also every recomputed result."""
    if badge.entry != entry.name:
        yield f"a badge of {badge.entry!r}, expected of {entry.name!r}"
    if datetime.fromisoformat(badge.date) > datetime.now(UTC):
        yield f"date {badge.date}, expected a date that has passed"
    if badge.entry_digest != entry.digest:
        return
    of_network = [c for c in entry.cells if c.result.backbone.identity == badge.weights]
    results = {str(loaded.result.column): loaded for loaded in of_network}
    columns = [str(check.column) for check in badge.checks]
    if sorted([*columns, *badge.not_verified]) != sorted(results):
        yield f"results {', '.join(columns)}, expected {', '.join(sorted(results))}, each once"
    for column, check in zip(columns, badge.checks, strict=True):
        for text in compare_with_entry(badge, check, results[column]) if column in results else ():
            yield f"{column}: {text}"


def compare_with_entry(badge: Badge, check: ColumnCheck, loaded: Loaded) -> Iterator[str]:
    """Yield what differs from the values that follow from the entry."""
    records, spec = loaded.records, loaded.result.spec
    if not isinstance(records, EpisodeRecords) or not isinstance(spec, EpisodicSpec):
        yield "no episodes, expected few-shot results"
        return
    index, n = records.index.tolist(), len(check.drawn)
    if n < min(FEWEST, len(index)):
        yield f"{n} episodes drawn, expected {min(FEWEST, len(index))} or more"
    here = {k: v for k, v in badge.environment.items() if k not in {"fsbench", "commit"}}
    scored = check.episodes * spec.episode.n_way * spec.episode.n_query
    expected = {
        "drawn episodes": (check.drawn, draw_episodes(loaded, n, badge.entry_digest, badge.seed)),
        "mean": (check.mean, loaded.result.score.mean),
        "environment": (check.differs, list_differences(loaded.result, here)),
        "scored outcomes": (check.scored.outcomes, scored),
    }
    for name, (actual, value) in expected.items():
        if actual != value:
            yield f"{name} {str(actual)[:100]}, expected {str(value)[:100]}"
    if not n <= check.episodes <= len(index):
        yield f"{check.episodes} episodes, expected at most the {len(index)} it has"
    dense = 0 if records.dense_total is None else int(records.dense_total.sum())
    if check.dense and not 1 <= check.dense.outcomes <= dense:
        yield f"{check.dense.outcomes} dense outcomes, expected 1 to {dense}"
    is_different = any(count.flipped for count in check.flips.values())
    if not set(check.wrong) <= set(index) or (is_different and not check.wrong):
        yield f"wrong episodes {list(check.wrong)}, expected episodes that differ"
