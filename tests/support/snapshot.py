"""The numbers that a change of the code must leave equal, collected for tests/golden/numbers.json.

    PYTHONPATH=tests python -m support.snapshot            lists what differs from the file
    PYTHONPATH=tests python -m support.snapshot --write    writes the file anew

Everything is keyed by content (hashes of weights, text of columns) and by names that readers see,
so that the file outlives formats and functions. The functions of the part "what is committed" know
today's code of boards and claims; another format needs other functions here, not another file.
"""

import hashlib
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.backbones.features import compute_features
from fsbench.backbones.loading import load_backbone
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import SAMPLING, EpisodeSpec
from fsbench.data.episodes import draw_manifest
from fsbench.results.entry import Loaded
from fsbench.results.summary import scored_images
from leaderboard.methods import MethodRow, MethodScore, build_from_table
from leaderboard.ranking.tiers import RankedEntry
from leaderboard.store import Board, BoardEntry
from leaderboard.tables import BoardTable, rank_tracks

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "numbers.json"
Numbers = dict[str, Any]

DIGITS = 12
"""Significant digits of a stored number."""


class Tolerance(NamedTuple):
    """Relative and absolute difference of two numbers that count as equal."""

    relative: float
    absolute: float


EXACT = Tolerance(1e-9, 1e-15)
"""Another order of a sum may make such a difference."""
FEATURES = Tolerance(1e-4, 1e-5)
"""Features depend on the kernels of a processor."""


class Difference(NamedTuple):
    """A number that changed; path: the keys that lead to it."""

    path: tuple[str, ...]
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"{' > '.join(self.path)}: was {self.was!r}, is {self.now!r}"


ABSENT = "absent"


def compare(
    was: Any, now: Any, path: tuple[str, ...] = (), tolerance: Tolerance = EXACT
) -> Iterator[Difference]:
    """Yield what differs between two trees of numbers; floats may differ by the tolerance."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in sorted({*was, *now}):
            values = (was.get(key, ABSENT), now.get(key, ABSENT))
            yield from compare(*values, (*path, key), tolerance)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for place, values in enumerate(zip(was, now, strict=True)):
            yield from compare(*values, (*path, str(place)), tolerance)
    elif isinstance(was, float) and isinstance(now, float):
        if not math.isclose(was, now, rel_tol=tolerance.relative, abs_tol=tolerance.absolute):
            yield Difference(path, was, now)
    elif type(was) is not type(now) or was != now:
        yield Difference(path, was, now)


def to_plain(value: Any) -> Any:
    """Return nested values as JSON has them: rounded numbers, null for nan, text for keys."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def write_json(value: Any, depth: int = 0) -> str:
    """Return sorted JSON in which everything that contains no other container is one line."""
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list) or not any(isinstance(item, dict | list) for item in items):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    inner = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        keys = sorted(value)
        lines = [
            f"{json.dumps(k, ensure_ascii=False)}: {write_json(value[k], depth + 1)}" for k in keys
        ]
        return "{" + inner + f",{inner}".join(lines) + "\n" + " " * depth + "}"
    lines = [write_json(item, depth + 1) for item in value]
    return "[" + inner + f",{inner}".join(lines) + "\n" + " " * depth + "]"


# Episodes and features: nothing of a board.

EPISODES = 20
COUNTS = {0: 60, 1: 41, 2: 200, 4: 80, 7: 55, 8: 1000, 9: 64}
"""Images of each class of an invented data set."""
GROUPS = hashlib.sha256(b"groups").hexdigest()
SPECS = tuple(
    EpisodeSpec(
        **SAMPLING[protocol]._asdict(), n_way=n_way, k_shot=k_shot, n_query=n_query, seed=seed
    )
    for protocol, n_way, k_shot, n_query, seed in (
        ("ibm", 5, 1, 15, 0),
        ("ibm", 5, 5, 15, 0),
        ("ibm", 5, 20, 15, 0),
        ("ibm", 5, 5, 15, 1),
        ("ibm", 2, 1, 40, 0),
        ("ibm", 7, 25, 16, 3),
        ("startup", 5, 1, 15, 0),
        ("startup", 5, 5, 15, 0),
        ("startup", 3, 10, 1, 7),
        ("ibm-disjoint", 5, 5, 15, 0),
        ("ibm-disjoint", 5, 1, 15, 2),
        ("startup-disjoint", 5, 5, 15, 0),
    )
)


def collect_manifests() -> Numbers:
    """Return spec in words -> hash of the first episodes."""
    return {
        f"{s.protocol} {s.n_way}w{s.k_shot}s {s.n_query} queries seed {s.seed}": draw_manifest(
            s, "invented", COUNTS, GROUPS, range(EPISODES)
        ).hash
        for s in SPECS
    }


NETWORKS = {
    "fsbench/pilot_resnet": 32,
    "fsbench/scnn": 64,
    "fsbench/toy_resnet": 32,
    "fsbench/mobilenet": 64,
    "timm/resnet10t": 64,
    "timm/mobilenetv3_small_050": 64,
    "timm/convnext_atto": 64,
    "timm/vit_tiny_patch16_224": 224,
}
"""Reference -> side of the images in pixels."""


def collect_features() -> Numbers:
    """Return mean, std and first values of the features of random networks on invented images."""
    numbers = {}
    for reference, side in NETWORKS.items():
        pixels = np.random.default_rng(0).integers(0, 256, (4, 3, side, side), np.uint8)
        features = compute_features(load_backbone(reference, random_init=0), pixels, "cpu")
        numbers[reference] = {
            "shape": list(features.shape),
            "mean": round_to(features.mean(), 6),
            "std": round_to(features.std(), 6),
            "first": [round_to(value, 6) for value in features[0, :4]],
        }
    return numbers


def round_to(value: float, digits: int) -> float:
    """Return a number rounded to significant digits."""
    return float(f"{value:.{digits}g}")


# What is committed: boards and claims.

BOARDS = {
    "pilot": ROOT / "leaderboard" / "studies" / "pilot" / "entries",
    "regime": ROOT / "leaderboard" / "studies" / "regime" / "entries",
}
CLAIMS = ROOT / "fsbench" / "claims" / "outcomes"


@cache
def read_entries(board: str) -> tuple[BoardEntry, ...]:
    return tuple(Board.open(BOARDS[board]).entries())


@cache
def rank(board: str) -> tuple[BoardTable, ...]:
    return rank_tracks(Board.open(BOARDS[board]).file, read_entries(board))


class ColumnOutcomes(NamedTuple):
    """The outcomes of one network in one column.

    index (E,): numbers of the episodes; correct (E, n_way, n_query): which queries are right;
    dense_correct (E, n_way): right ones of all possible queries, if counted. A probe has one
    episode, a row of test images: right or wrong at the rate that its rule chose.
    """

    column: str
    spec_digest: str
    fingerprint: str
    index: NDArray[np.int64]
    correct: NDArray[np.bool_]
    dense_correct: NDArray[np.int64] | None = None

    def digest(self) -> bytes:
        digest = hashlib.sha256("\n".join(self[:3]).encode())
        order = np.argsort(self.index, kind="stable")
        digest.update(self.index[order].astype("<i8").tobytes())
        digest.update(f"{self.correct.shape}".encode())
        digest.update(np.packbits(self.correct[order]).tobytes())
        if self.dense_correct is not None:
            digest.update(self.dense_correct[order].astype("<i8").tobytes())
        return digest.digest()


def read_outcomes(loaded: Loaded) -> ColumnOutcomes:
    result, records = loaded.result, loaded.records
    facts = (str(result.column), result.spec_digest, result.dataset.fingerprint)
    if isinstance(records, EpisodeRecords):
        return ColumnOutcomes(*facts, records.index, records.correct, records.dense_correct)
    right = scored_images(records, result.spec)
    return ColumnOutcomes(*facts, np.zeros(1, np.int64), right[None])


def digest_outcomes(columns: Iterable[ColumnOutcomes]) -> Numbers:
    """Return the number of results, and one digest over all of them in order of columns."""
    digests = [c.digest() for c in sorted(columns, key=lambda c: (c.column, c.digest()))]
    return {"results": len(digests), "digest": hashlib.sha256(b"".join(digests)).hexdigest()}


def collect_outcomes() -> Numbers:
    """Return board -> hash of weights -> digest of all its outcomes there."""
    numbers = {}
    for board in BOARDS:
        columns: dict[str, list[ColumnOutcomes]] = defaultdict(list)
        for entry in read_entries(board):
            for loaded in entry.loaded:
                columns[loaded.result.backbone.identity].append(read_outcomes(loaded))
        numbers[board] = {identity: digest_outcomes(c) for identity, c in columns.items()}
    return numbers


def collect_boards() -> Numbers:
    """Return board -> track -> ranked rows with their numbers, unranked rows with the reason."""
    return {board: {label(t): collect_table(t) for t in rank(board)} for board in BOARDS}


def label(table: BoardTable) -> str:
    return table.track.label if table.track else ""


def collect_table(table: BoardTable) -> Numbers:
    ranked = [row for row in table.ranking.entries if row.tier is not None]
    return {
        "columns": list(table.ranking.columns),
        "ranked": {row.name: collect_ranked_row(row, table) for row in ranked},
        "ranked apart": [row.name for tier in table.ranking.apart for row in tier],
        "unranked": {row.name: row.reason for row in table.ranking.unranked},
    }


def collect_ranked_row(row: RankedEntry, table: BoardTable) -> Numbers:
    behind = row.behind
    seeds = table.seeds.get(row.name, {})
    return {
        "tier": row.tier,
        "overall": [row.overall, table.seed_errors.scores[row.name].ci95],
        "behind leader": behind
        and {"gap": behind.gap, "ci95": behind.ci95, "p": row.p, "n": behind.n},
        "columns": {column: [s.mean, s.ci95, s.n] for column, s in row.scores.items()},
        "seeds": {seed: entry.overall for seed, entry in seeds.items()},
    }


PILOT_RESNET = "-architecture=pilot_resnet-width=16"
PLAIN = {
    "pilot-normal": "schedule=cosine, batch_size=64",
    "pilot-normal-as-anil": "schedule=cosine, batch_size=200",
    "pilot-normal-as-anil-schedule=single_cycle": "schedule=single_cycle, batch_size=200",
    "pilot-normal-as-full_reset": "schedule=constant",
    "pilot-normal-schedule=single_cycle": "schedule=single_cycle, batch_size=64",
    "pilot-normal-schedule=step": "schedule=step",
    "regime-normal": "schedule=constant, opt_reset=all",
    "regime-normal-as-full_reset": "opt_reset=none",
    "regime-normal-schedule=single_cycle": "schedule=single_cycle",
    "regime-normal-schedule=step": "schedule=step",
    f"regime-normal{PILOT_RESNET}": "schedule=constant, opt_reset=all",
    f"regime-normal-as-full_reset{PILOT_RESNET}": "opt_reset=none",
    f"regime-normal-as-swr_reanchor{PILOT_RESNET}": "schedule=step",
    "regime-normal-fields-01d672": "schedule=single_cycle",
}
"""Entry -> what distinguishes plain training in the file where a table has it several times."""


def collect_methods() -> Numbers:
    """Return board -> conditions -> plan -> method, as the file calls it -> its gains."""
    numbers: Numbers = {}
    for board in BOARDS:
        tracks = numbers[board] = {}
        for methods in (methods for table in rank(board) for methods in build_from_table(table)):
            several = sum(row.method == "normal" for row in methods.rows) > 1
            names = {
                row.name: f"normal ({PLAIN[row.name]})"
                if several and row.method == "normal"
                else row.method
                for row in methods.rows
            }
            plans: dict[str, Numbers] = defaultdict(dict)
            for row in methods.rows:
                collected = collect_method_row(row, names)
                plans[row.plan or "no training"][names[row.name]] = collected
            tracks[methods.track] = dict(plans)
    return numbers


def collect_method_row(row: MethodRow, names: Mapping[str, str]) -> Numbers:
    """names: of the rows of the board in the file."""
    source = row.source_gain
    controls = {kind: names[control] for kind, control in row.controls.items()}
    return {
        "seeds": len(row.seeds),
        "overall": row.overall and collect_method_score(row.overall),
        "columns": {column: collect_method_score(score) for column, score in row.scores.items()},
        "controls": {**controls, **row.missing},
        "in domain": source and [source.gap, source.ci95, source.p, source.p_holm],
    }


def collect_method_score(score: MethodScore) -> Numbers:
    """Mean with the intervals over episodes and over seeds; gap, ci95, p, Holm's p, seeds."""
    gains = {
        kind: [gain.gap, gain.ci95, gain.p, gain.p_holm, len(gain.seeds)]
        for kind, gain in score.gains.items()
    }
    return {"mean": [score.mean, score.ci95, score.ci95_seeds], **gains}


def collect_claims() -> Numbers:
    """Return run of a claim -> statement -> its verdict and the numbers that it rests on."""
    numbers: Numbers = {}
    for path in sorted(CLAIMS.glob("*.json")):
        outcome = json.loads(path.read_text(encoding="utf8"))
        statements = numbers[path.stem] = {"seeds": outcome["seeds"]}
        for statement in outcome["statements"]:
            statements[statement["name"]] = {
                "verdict": statement["verdict"],
                "conditions": {c["what"]: [c["ours"], c["holds"]] for c in statement["conditions"]},
                "figures": {f["what"]: [f["ours"], f["verdict"]] for f in statement["figures"]},
            }
    return numbers


SECTIONS: dict[str, Callable[[], Numbers]] = {
    "manifests": collect_manifests,
    "features": collect_features,
    "outcomes": collect_outcomes,
    "boards": collect_boards,
    "methods": collect_methods,
    "claims": collect_claims,
}


def read_golden() -> Numbers:
    numbers: Numbers = json.loads(GOLDEN.read_text(encoding="utf8"))
    return numbers


def find_differences(section: str) -> list[Difference]:
    """Return what differs from the golden file in one section."""
    tolerance = FEATURES if section == "features" else EXACT
    was, now = read_golden().get(section, {}), to_plain(SECTIONS[section]())
    return list(compare(was, now, (section,), tolerance))


def main(arguments: list[str]) -> int:
    if "--write" in arguments:
        numbers = {name: to_plain(collect()) for name, collect in SECTIONS.items()}
        GOLDEN.write_text(write_json(numbers) + "\n", encoding="utf8")
        return 0
    differences = [d for section in SECTIONS for d in find_differences(section)]
    print("\n".join(map(str, differences)) or "no number differs")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
