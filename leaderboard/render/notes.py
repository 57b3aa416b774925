"""Sentences around the tables of a board, and numbers as people read them, in percent."""

from collections.abc import Mapping

from leaderboard.badges import SELF_REPORTED
from leaderboard.ranking.tiers import RankedEntry, Ranking
from leaderboard.tables import BoardTable

EPISODES_NOTE = "± is the 95 % interval over episodes or images, 1.96 s / sqrt(n), not over seeds."
SEEDS_NOTE = (
    "A row of several seeds is the mean over them, and its ± covers seeds and episodes (two-way "
    "analysis of variance, Student's t); in tiers its seed variance is at least the pooled one."
)
TIER_NOTE = (
    "Entries of one tier are not significantly worse than its leader (paired over shared episodes "
    "or test images, p adjusted for all pairs of ranked entries, alpha 0.05)."
)
SELF_MARK = "ˢ"
SELF_NOTE = (
    f"{SELF_MARK} {SELF_REPORTED}: no signed badge, so only the submitter vouches for the number."
)
TRUST_NOTE = (
    "The checks of this board show that an entry fits its own records: means, episodes, classes "
    "and hashes. They do not show that a network gave these outcomes. A fabricated entry whose "
    "hashes fit passes them all and can state any accuracy, first place included. A signed badge "
    "says that somebody whom this board trusts has recomputed episodes, drawn at random, from the "
    "weights; it says nothing about how the weights were trained."
)
"""Warning beside entries without a signed badge."""
SEED_MARK = "↳ "
"""Before the name of a seed below its row."""
ONE_SEED = "◦"
"""Before a row of one seed."""
PUBLISHED_NOTE = "Copied from papers, no per-episode records: for reference only, not ranked."
SPREAD_NOTE = "± over seeds as printed; papers do not state whether SD, SE or CI."
"""The spread of a published accuracy, which is not an interval over episodes."""
RAISED = str.maketrans("0123456789abcdefghijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ")


class Best(str):
    """The text of a number that is among the best of its column."""


def lift_letters(letters: str) -> str:
    """Return letters as superscripts; there is none of q."""
    return letters.translate(RAISED)


def to_percent(fraction: float, sign: str = "") -> str:
    """Return percent with two decimals; sign: '+' to write it of positive numbers as well."""
    return f"{100 * fraction:{sign}.2f}"


def format_tier(entry: RankedEntry) -> int | str:
    """Return the tier of a row, hollow if it is ranked apart, or a dash."""
    if entry.tier is None:
        return "-"
    return f"{ONE_SEED}{entry.tier}" if entry.reason else entry.tier


def mark_single_seed(table: BoardTable, name: str) -> str:
    """Return the name of a row, hollow if it has one seed and others have more."""
    return f"{ONE_SEED} {name}" if table.seeds and name not in table.seeds else name


def describe_ranking(table: BoardTable) -> tuple[str, ...]:
    """Return the finding of a table in a sentence, what it does not show, and any warning."""
    warnings = [f"Warning: {table.warning}"] if table.warning else []
    leader = describe_leader(table.ranking)
    return (f"{leader}.", *describe_single_seeds(table), *warnings) if leader else tuple(warnings)


def describe_leader(ranking: Ranking) -> str:
    """Return who is first and what that shows, as a sentence without its end; empty if nobody."""
    if not ranking.tiers:
        return ""
    best, ranked = ranking.tiers[0], sum(map(len, ranking.tiers))
    of = " of several seeds" * bool(ranking.apart)
    leader = f"{best[0].name} ({to_percent(best[0].overall or 0.0)} %)"
    if ranked == 1:
        return f"{leader} is the only ranked entry{of}: it is compared with nothing"
    if len(best) == 1:
        return f"{leader} alone is in tier 1 of {ranked} ranked entries{of}"
    return (
        f"{len(best)} of {ranked} ranked entries{of} share tier 1: which of them is best is not "
        f"decided; {leader} has the highest mean"
    )


def describe_single_seeds(table: BoardTable) -> list[str]:
    """Return what a row of one seed does not show; nothing where no row has one."""
    if all(row.seeds for row in table.rows.values()):
        return []
    covers = "± and tiers cover the draw of episodes or test images, not another seed."
    if not table.seeds:
        return [f"One pretraining seed per row: {covers}"]
    if pooled := table.seed_errors.pooled:
        covers = (
            "± and tiers take the pooled seed spread of the other rows (overall "
            f"{to_percent(pooled.variance**0.5)} points); their own may be wider, and no rule sees "
            "it."
        )
    apart = "ranked apart, among each other; " * bool(table.ranking.apart)
    return [f"{ONE_SEED} one pretraining seed: {apart}{covers}"]


def describe_coverage(table: BoardTable) -> str:
    """Return what the intervals of a table cover, in a sentence."""
    return SEEDS_NOTE if table.seeds else EPISODES_NOTE


def list_reasons(outcome: str, reasons: Mapping[str, str]) -> list[str]:
    """Return the names with each reason in one sentence: Left out, a, b: no recipe."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names_by_reason.setdefault(reason, []).append(name)
    return [f"{outcome}, {', '.join(names)}: {why}." for why, names in names_by_reason.items()]
