"""What the harness counts, and its table."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stress.jobs import Outcome


@dataclass
class Row:
    """One kind of fault in one job.

    survived: faults after which the same command ended with the same outcome; lost, wrong: files of
    the outcome that were missing or other then; torn: half-written files that a reader could see.
    """

    fault: str
    job: str
    injected: int = 0
    survived: int = 0
    lost: int = 0
    wrong: int = 0
    torn: int = 0
    said: list[str] = field(default_factory=list)

    def judge(
        self, expected: Outcome, result: Outcome, torn: Iterable[Path], failed: str = ""
    ) -> None:
        """Count one fault. failed: what else went wrong."""
        torn = list(torn)
        lost = expected.keys() - result.keys()
        wrong = {name for name in expected.keys() & result.keys() if expected[name] != result[name]}
        wrong |= result.keys() - expected.keys()
        self.injected += 1
        self.lost += len(lost)
        self.wrong += len(wrong)
        self.torn += len(torn)
        if lost or wrong or torn or failed:
            self.said.append(
                f"{failed} lost {sorted(lost)} wrong {sorted(wrong)} torn {torn}"[:2000]
            )
        else:
            self.survived += 1

    @property
    def whole(self) -> bool:
        return self.injected == self.survived > 0


def table(rows: Iterable[Row]) -> str:
    head = ("fault", "job", "injected", "survived", "lost", "wrong", "half-written")
    counts = [(r.fault, r.job, r.injected, r.survived, r.lost, r.wrong, r.torn) for r in rows]
    return "\n".join(
        "{:24}{:14}{:>10}{:>10}{:>6}{:>7}{:>14}".format(*row) for row in (head, *counts)
    )
