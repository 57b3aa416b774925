"""A candidate: the results of one model, read but not believed, with a declaration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.schema import BackboneFacts, Declaration
from fsbench.results.reading import load, result_files
from fsbench.results.rules import Loaded, Problem
from leaderboard.submission.archive import MemoryBudget, check_sizes


@dataclass(frozen=True, eq=False)
class Candidate:
    """One entry to be: a name for the model's folder, its cells, what is declared.

    broken: files that could not even be parsed, as Problems; left_out: what belongs to no column of
    the board.
    """

    declaration: Declaration
    model: str
    cells: tuple[Loaded, ...]
    broken: tuple[Problem, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def facts(self) -> BackboneFacts:
        """The backbone of the first cell; that all agree is a check. Raises UsageError."""
        if not self.cells:
            raise UsageError(f"{self.name} holds no readable result", fix="see the problems above")
        return self.cells[0].result.backbone

    def keeping(self, cells: Iterable[Loaded], left_out: Iterable[str] = ()) -> Candidate:
        return replace(self, cells=tuple(cells), left_out=tuple(left_out))

    def renamed(self, name: str) -> Candidate:
        return replace(self, declaration=self.declaration.model_copy(update={"name": name}))


def read_submissions(
    folder: Path, declaration: Declaration, models: Sequence[str] = ()
) -> list[Candidate]:
    """One candidate per model below `folder`; several get names suffixed by the model.

    models: names or references to keep, all when empty. Raises UnknownName for one that is not
    there, UsageError when the folder holds no result, ValidationFailed when it holds far too many.
    """
    files, budget = result_files(folder), MemoryBudget()
    check_sizes(files)
    groups: dict[tuple[str, str], list[Loaded]] = defaultdict(list)
    broken: list[Problem] = []
    for path in files:
        try:
            cell = load(path)
        except ValidationFailed as error:
            broken.append(Problem("unreadable", str(path), error.message, "a result", error.fix))
            continue
        groups[cell.model, cell.result.backbone.weights_hash].append(budget.add(cell))
    chosen = select_models(groups, models)
    found = [
        Candidate(declaration, key[0], tuple(cells), tuple(broken))
        for key, cells in sorted(chosen.items())
    ]
    if not found:
        return [Candidate(declaration, "unnamed", (), tuple(broken))]
    return found if len(found) == 1 else [add_model_suffix(each, found) for each in found]


def select_models(
    groups: dict[tuple[str, str], list[Loaded]], models: Sequence[str]
) -> dict[tuple[str, str], list[Loaded]]:
    """The groups whose model name or reference is asked for."""
    if not models:
        return groups
    spelled = {key: {key[0], cells[0].result.backbone.ref} for key, cells in groups.items()}
    known = set().union(*spelled.values())
    for model in models:
        if model not in known:
            raise UnknownName("model", model, known)
    return {key: groups[key] for key, names in spelled.items() if names & set(models)}


def add_model_suffix(candidate: Candidate, among: Sequence[Candidate]) -> Candidate:
    """NAME-MODEL, with the start of the weights hash where two models share a name."""
    twins = [other for other in among if other.model == candidate.model]
    tail = f"-{candidate.facts.weights_hash[:6]}" if len(twins) > 1 else ""
    return candidate.renamed(f"{candidate.name}-{candidate.model}{tail}"[:200])
