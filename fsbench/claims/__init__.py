"""Claims of the papers that a small machine can check, one file each; the file name is the name.

A file defines

    CLAIM   the Claim: its source and its statements, each with its condition and rule
    run     (settings, report) -> ClaimOutcome

`fsbench claims` lists and runs them. A statement is judged only where its condition holds: what
the paper's effect needs (over-fitting, an ascent that reaches chance, a bound that bites, arms that
learn equally) is measured in the same runs, and a run without it says nothing about the statement.

Seeds below a claim's first one were used to choose settings; verdicts come from those after it.
Outcomes that were recorded lie in outcomes/, NAME.json and (of `--full`) NAME-full.json.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any, Literal

from fsbench.core.errors import UsageError
from fsbench.core.panels import Panel
from fsbench.core.registry import Registry
from fsbench.core.schema import Provenance
from fsbench.core.specs import Frozen
from fsbench.data.catalog import DataRoots

ClaimVerdict = Literal["reproduced", "direction only", "not reproduced", "not testable here"]
DIRECTED_SHARE = 0.9
"""Part of a statement's figures that must have the published direction for `direction only`."""
OVERALL = (
    "statement: not testable here if a condition fails; else reproduced if all figures are;"
    " direction only if at least 9 in 10 figures have at least the published direction; otherwise"
    " not reproduced"
)
FIRST_SEED = 100
"""First seed of a claim; smaller ones are for trials."""
FITTED = 99.0
"""Training accuracy (%) from which images count as learned by heart."""
OUTCOMES = Path(__file__).parent / "outcomes"


class ClaimCondition(Frozen):
    """Condition under which a statement is testable: the requirement and the measurement."""

    what: str
    required: str
    ours: str
    holds: bool


class ClaimFigure(Frozen):
    """One checkable figure of a paper: what it says, what was measured here, and the verdict."""

    what: str
    published: str
    ours: str
    verdict: ClaimVerdict


class StatementOutcome(Frozen):
    """The result of testing one statement; reason: why it has its verdict, in one line."""

    name: str
    statement: str
    rule: str
    conditions: tuple[ClaimCondition, ...]
    figures: tuple[ClaimFigure, ...]
    verdict: ClaimVerdict
    reason: str


class ClaimOutcome(Frozen):
    """The result of re-running a claim; provenance: when, where and by which command."""

    source: str
    seeds: int
    full: bool = False
    statements: tuple[StatementOutcome, ...]
    notes: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    provenance: Provenance | None = None


@dataclass(frozen=True)
class ClaimStatement:
    """A statement of a paper in one line, the condition that it needs, and the rule of a figure.

    searched: the settings come from a search for the printed figures, so that agreement is no
    evidence and the statement stays not reproduced.
    """

    text: str
    condition: str
    rule: str
    searched: bool = False


@dataclass(frozen=True)
class ClaimSettings:
    """Settings of a claim's run. seeds: number of seeds; full: the run that takes hours; data:
    roots of the data sets; processes and device change no rule.
    """

    seeds: int = 0
    first_seed: int = FIRST_SEED
    full: bool = False
    data: DataRoots = field(default_factory=DataRoots)
    processes: int = 2
    device: str = "cpu"

    @property
    def seed_range(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. source: paper, section, table or figure; statements: by name.

    seeds, full_seeds: default numbers of the quick and the `--full` run (0: nothing is random); it
    takes more seeds, and another set-up where the file says so; first_seed: the first seed that no
    trial used.
    """

    source: str
    statements: Mapping[str, ClaimStatement]
    seeds: int = 0
    full_seeds: int = 0
    first_seed: int = FIRST_SEED

    def judge(
        self,
        settings: ClaimSettings,
        measured: Mapping[str, tuple[Sequence[ClaimCondition], Iterable[ClaimFigure]]],
        notes: Iterable[str] = (),
        panels: Iterable[Panel] = (),
    ) -> ClaimOutcome:
        """Return the outcome; measured: conditions and figures of every statement by name."""
        return ClaimOutcome(
            source=self.source,
            seeds=settings.seeds if self.seeds else 0,
            full=settings.full,
            statements=tuple(
                assess_statement(name, self.statements[name], conditions, tuple(figures))
                for name, (conditions, figures) in measured.items()
            ),
            notes=tuple(notes),
            panels=tuple(panels),
        )


def assess_statement(
    name: str,
    statement: ClaimStatement,
    conditions: Sequence[ClaimCondition],
    figures: Sequence[ClaimFigure],
) -> StatementOutcome:
    """Judge a statement by the rule OVERALL and say why in one line."""
    failed = [condition for condition in conditions if not condition.holds]
    verdict: ClaimVerdict = "not testable here" if failed else judge_figures(figures)
    if failed:
        reason = f"{failed[0].what}: {failed[0].ours}, required {failed[0].required}"
    else:
        reason = explain_verdict(figures)
        if statement.searched:
            reason = f"settings found by a search for these figures (alone: {verdict}); {reason}"
            verdict = "not reproduced"
    return StatementOutcome(
        name=name,
        statement=statement.text,
        rule=statement.rule,
        conditions=tuple(conditions),
        figures=tuple(figures),
        verdict=verdict,
        reason=reason,
    )


def explain_verdict(figures: Sequence[ClaimFigure]) -> str:
    """Return how many figures are reproduced, and which is the first that is not."""
    missed = [figure for figure in figures if figure.verdict != "reproduced"]
    missed.sort(key=lambda figure: figure.verdict == "direction only")
    text = f"{len(figures) - len(missed)} of {len(figures)} figures reproduced"
    if missed:
        first = missed[0]
        text += f"; {first.verdict}: {first.what}: {first.ours} (published {first.published})"
    return text


def judge_figures(figures: Iterable[ClaimFigure]) -> ClaimVerdict:
    """Return the verdict on a statement whose condition holds by the rule OVERALL."""
    verdicts = [figure.verdict for figure in figures]
    directed = sum(verdict != "not reproduced" for verdict in verdicts)
    return choose_verdict(
        all(verdict == "reproduced" for verdict in verdicts),
        directed >= DIRECTED_SHARE * len(verdicts),
    )


def judge_gains(gains: Sequence[float]) -> ClaimVerdict:
    """Return `reproduced` if every seed gains, `direction only` if the mean does."""
    return choose_verdict(min(gains) > 0, fmean(gains) > 0)


def choose_verdict(reproduced: bool, directed: bool = False) -> ClaimVerdict:
    """Return the first that holds: reproduced, direction only if `directed`, not reproduced."""
    return "reproduced" if reproduced else "direction only" if directed else "not reproduced"


def require_at_least(
    what: str, values: Iterable[float], least: float, unit: str = " %"
) -> ClaimCondition:
    """Require the smallest of the values to be at least `least`."""
    smallest = min(values)
    return ClaimCondition(
        what=what,
        required=f"at least {least:g}{unit}",
        ours=f"{smallest:.3g}{unit}",
        holds=smallest >= least,
    )


def require_at_most(
    what: str, values: Iterable[float], most: float, unit: str = " %"
) -> ClaimCondition:
    """Require the largest of the values to be at most `most`."""
    largest = max(values)
    return ClaimCondition(
        what=what,
        required=f"at most {most:g}{unit}",
        ours=f"{largest:.3g}{unit}",
        holds=largest <= most,
    )


def require_two_seeds(seeds: int) -> None:
    """Raise UsageError for fewer than two seeds, which have no standard deviation."""
    if seeds < 2:
        raise UsageError(f"--seeds {seeds} gives no standard deviation", fix="use at least 2")


PARTS = ("CLAIM", "run")


def _pick(module: ModuleType) -> Any:
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise LookupError(f"it defines no {', '.join(missing)}")
    return module


CLAIMS: Registry[Any] = Registry("claim", "fsbench.claims", _pick)
"""Module of a claim by name."""


def load_recorded(name: str, full: bool = False) -> ClaimOutcome | None:
    """Return the recorded outcome of a claim, None if there is none."""
    path = OUTCOMES / f"{name}{'-full' if full else ''}.json"
    if not path.is_file():
        return None
    return ClaimOutcome.model_validate_json(path.read_text(encoding="utf8"))


def list_statements() -> list[dict[str, str]]:
    """Return every statement with its condition, the seeds and the recorded verdicts."""
    rows = []
    for name, module in CLAIMS.items():
        claim: Claim = module.CLAIM
        recorded = [load_recorded(name), load_recorded(name, full=True)]
        for part, statement in claim.statements.items():
            verdicts = [
                next((s.verdict for s in outcome.statements if s.name == part), "")
                for outcome in recorded
                if outcome is not None
            ]
            rows.append(
                {
                    "claim": name,
                    "statement": part,
                    "source": claim.source,
                    "says": statement.text,
                    "condition": statement.condition,
                    "seeds": str(claim.seeds),
                    "verdict": "; full: ".join(verdicts),
                }
            )
    return rows
