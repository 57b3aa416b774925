"""Claims of the papers that a small machine can check: NAME.yaml and NAME.py are one claim.

NAME.py defines CLAIM by engine.py; `fsbench claims` lists and runs them. A statement is judged only
where its condition holds: what the paper's effect needs (over-fitting, an ascent that reaches
chance, a bound that bites, arms that learn equally) is measured in the same runs, and a run without
it says nothing about the statement. Conditions and figures are judged by means over seeds. A
statement that is not reproduced says whose fault that is: not testable at this scale, set-up
differs, or, for a reason that its card names, contradicts the paper.
Outcomes that were recorded lie in outcomes/, NAME.json and (of `--full`) NAME-full.json.
"""

from pathlib import Path

from fsbench.claims.engine import Claim, ClaimOutcome, read_claim_card
from fsbench.core.registry import Registry

CLAIMS: Registry[Claim] = Registry(
    "claim", "fsbench.claims", lambda module: module.CLAIM, machinery=("engine",)
)
"""Claim by name."""
OUTCOMES = Path(__file__).parent / "outcomes"


def load_recorded(name: str, full: bool = False) -> ClaimOutcome | None:
    """Return the recorded outcome of a claim, None if there is none."""
    path = OUTCOMES / f"{name}{'-full' if full else ''}.json"
    return ClaimOutcome.model_validate_json(path.read_bytes()) if path.is_file() else None


def list_statements() -> list[dict[str, str]]:
    """Return every statement: its condition, recorded verdicts and whose fault a miss is."""
    rows = []
    for name in CLAIMS.names():
        card = read_claim_card(name)
        recorded = [load_recorded(name), load_recorded(name, full=True)]
        outcomes = [part for outcome in recorded if outcome for part in outcome.statements]
        for part, statement in card.statements.items():
            row = {"claim": name, "statement": part, "source": card.source, "says": statement.text}
            row |= {"condition": statement.condition, "seeds": str(card.seeds)}
            tested = [outcome for outcome in outcomes if outcome.name == part]
            row["verdict"] = "; full: ".join(outcome.verdict for outcome in tested)
            faults = dict.fromkeys(outcome.fault for outcome in tested if outcome.fault)
            reason = f": {statement.fault_reason}" if faults else ""
            rows.append(row | {"fault of a miss": "; ".join(faults) + reason})
    return rows
