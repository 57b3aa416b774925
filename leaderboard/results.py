"""Results of folders, ranked like the entries of a board: one table per track, never mixed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fsbench.core.errors import ValidationFailed
from fsbench.results.entry import Loaded
from fsbench.results.outcomes import digest_records
from fsbench.results.table import distinct_labels
from fsbench.results.verification import read_loaded
from leaderboard.columns import column_order
from leaderboard.entry_networks import Network, number_seeds
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.submission import common_name, recipe_key
from leaderboard.tables import BoardTable, NetworkGroup, rank_groups

Models = Mapping[str, Mapping[Column, Loaded]]
"""Name of a model -> column -> result."""


def rank_results(paths: Sequence[Path]) -> list[BoardTable]:
    """Return `rank_loaded` of the results in folders, after verifying them.

    Raises UsageError without results, ValidationFailed.
    """
    return rank_loaded([loaded for path in paths for loaded in read_loaded(path)])


def rank_loaded(loaded: Sequence[Loaded]) -> list[BoardTable]:
    """Return one table per track of these results. Models are named as by `fsbench show`.

    Raises ValidationFailed for two results of one task that differ.
    """
    models = group_by_model(loaded)
    columns = sorted({c for by_column in models.values() for c in by_column}, key=column_order)
    heads = {frozenset(c.name.adaptation for c in by_column) for by_column in models.values()}
    shape = "together" if len(heads) == 1 else "apart"
    file = BoardFile(name="results", columns=tuple(columns), heads=shape)
    return list(rank_groups(file, join_recipes(models)))


def group_by_model(loaded: Sequence[Loaded]) -> Models:
    """Group results. Raises ValidationFailed for two results of one task that differ."""
    names = distinct_labels([one.result for one in loaded], [one.model for one in loaded])
    models: dict[str, dict[Column, Loaded]] = {}
    for name, one in zip(names, loaded, strict=True):
        first = models.setdefault(name, {}).setdefault(identify_column(one.result), one)
        if first is not one and digest_records(first.records) != digest_records(one.records):
            raise ValidationFailed(
                f"{first} and {one} have different outcomes", fix="pass only one of them"
            )
    return models


def join_recipes(models: Models) -> list[NetworkGroup]:
    """Return the rows: the models of one recipe with equal columns and episodes, others alone."""
    names_by_recipe: dict[object, list[str]] = {}
    for name, by_column in models.items():
        outcomes = {column: extract_outcomes(loaded) for column, loaded in by_column.items()}
        episodes = frozenset((c, o.draws, o.numbering) for c, o in outcomes.items())
        facts = next(iter(by_column.values())).result.backbone
        key = recipe_key(facts), episodes
        names_by_recipe.setdefault(key, []).append(name)
    groups: dict[str, NetworkGroup] = {}
    for names in names_by_recipe.values():
        row = common_name(names)
        if len(names) > 1 and row in {*groups, *models}:
            row = f"{names[0]} and {len(names) - 1} more"
        results = [tuple(models[name].values()) for name in names]
        seeds = number_seeds([of_model[0].result.backbone for of_model in results])
        groups[row] = NetworkGroup(row, tuple(map(Network, names, results, seeds)))
    return list(groups.values())
