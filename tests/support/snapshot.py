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
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from support.cases import read_cases

from fsbench.backbones.features import compute_features
from fsbench.backbones.loading import load_backbone
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import SAMPLING, EpisodeSpec
from fsbench.data.episodes import draw_manifest
from fsbench.results.summary import scored_images
from leaderboard.methods import MethodRow, MethodScore, build_from_table
from leaderboard.ranking.tiers import RankedEntry
from leaderboard.store import Board, BoardEntry
from leaderboard.tables import BoardTable, rank_tracks

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "numbers.json"
CASES = read_cases("snapshot")
Numbers = dict[str, Any]

DIGITS = 12
"""Significant digits of a stored number."""
EXACT = {"rel_tol": 1e-9, "abs_tol": 1e-15}
"""Another order of a sum may make such a difference."""
FEATURES = {"rel_tol": 1e-4, "abs_tol": 1e-5}
"""Features depend on the kernels of a processor."""
INNERMOST = re.compile(r"([\[{])(\n[^][{}]*)([\]}])")


def list_leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys that lead to every value of a tree of numbers, and the value."""
    if not isinstance(value, dict | list) or not value:
        yield path, value
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from list_leaves(item, f"{path} > {key}" if path else str(key))


def compare(was: Any, now: Any, tolerance: Mapping[str, float] = EXACT) -> list[str]:
    """Return what differs between two trees of numbers; floats may differ by the tolerance."""
    old, new = dict(list_leaves(was)), dict(list_leaves(now))
    lines = []
    for path in sorted(old.keys() | new.keys()):
        a, b = old.get(path, "absent"), new.get(path, "absent")
        is_close = type(a) is type(b) is float and math.isclose(a, b, **tolerance)
        if not is_close and (type(a) is not type(b) or a != b):
            lines.append(f"{path}: was {a!r}, is {b!r}")
    return lines


def to_plain(value: Any) -> Any:
    """Return nested values as JSON has them: rounded numbers, null for nan, text for keys."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return round_to(value, DIGITS) if math.isfinite(value) else None
    return value


def round_to(value: float, digits: int) -> float:
    """Return a number rounded to significant digits."""
    return float(f"{value:.{digits}g}")


def write_json(value: Any) -> str:
    """Return sorted JSON in which everything that contains no other container is one line."""
    text = json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False)
    return INNERMOST.sub(lambda m: m[1] + re.sub(r"\n *", " ", m[2]).strip() + m[3], text)


# Episodes and features: nothing of a board.

EPISODES = 20
COUNTS = {0: 60, 1: 41, 2: 200, 4: 80, 7: 55, 8: 1000, 9: 64}
"""Images of each class of an invented data set."""
GROUPS = hashlib.sha256(b"groups").hexdigest()
SPECS = CASES["specs"]
"""Protocol, ways, shots, queries, seed."""


def collect_manifests() -> Numbers:
    """Return spec in words -> hash of the first episodes."""
    numbers = {}
    for protocol, n_way, k_shot, n_query, seed in SPECS:
        sizes = {"n_way": n_way, "k_shot": k_shot, "n_query": n_query, "seed": seed}
        spec = EpisodeSpec(**SAMPLING[protocol]._asdict(), **sizes)
        manifest = draw_manifest(spec, "invented", COUNTS, GROUPS, range(EPISODES))
        key = f"{spec.protocol} {n_way}w{k_shot}s {n_query} queries seed {seed}"
        numbers[key] = manifest.hash
    return numbers


NETWORKS = CASES["networks"]
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


def digest_outcomes(
    index: NDArray[np.int64],
    correct: NDArray[np.bool_],
    dense_correct: NDArray[np.int64] | None,
    *names: str,
) -> bytes:
    """Return a digest of the outcomes of one network in one column, whatever their order.

    index (E,): numbers of the episodes; correct (E, n_way, n_query): which queries are right;
    dense_correct (E, n_way): right ones of all possible queries, if counted; names: of the column,
    its spec and its images. A probe has one episode, a row of test images.
    """
    digest = hashlib.sha256("\n".join(names).encode())
    order = np.argsort(index, kind="stable")
    digest.update(index[order].astype("<i8").tobytes())
    digest.update(f"{correct.shape}".encode())
    digest.update(np.packbits(correct[order]).tobytes())
    if dense_correct is not None:
        digest.update(dense_correct[order].astype("<i8").tobytes())
    return digest.digest()


def collect_outcomes() -> Numbers:
    """Return board -> hash of weights -> results, and one digest over them in order of columns."""
    numbers: Numbers = {}
    for board in BOARDS:
        digests: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
        for loaded in (loaded for entry in read_entries(board) for loaded in entry.loaded):
            result, records = loaded.result, loaded.records
            if isinstance(records, EpisodeRecords):
                rows = (records.index, records.correct, records.dense_correct)
            else:
                right = scored_images(records, result.spec)
                rows = (np.zeros(1, np.int64), right[None], None)
            names = (str(result.column), result.spec_digest, result.dataset.fingerprint)
            digests[result.backbone.identity].append((names[0], digest_outcomes(*rows, *names)))
        numbers[board] = {
            identity: {
                "results": len(columns),
                "digest": hashlib.sha256(b"".join(d for _, d in sorted(columns))).hexdigest(),
            }
            for identity, columns in digests.items()
        }
    return numbers


def collect_boards() -> Numbers:
    """Return board -> track -> ranked rows with their numbers, unranked rows with the reason."""
    return {
        board: {t.track.label if t.track else "": collect_table(t) for t in rank(board)}
        for board in BOARDS
    }


def collect_table(table: BoardTable) -> Numbers:
    ranked = [row for row in table.ranking.entries if row.tier is not None]
    return {
        "columns": list(table.ranking.columns),
        "ranked": {row.name: collect_ranked_row(row, table) for row in ranked},
        "ranked apart": [row.name for tier in table.ranking.apart for row in tier],
        "unranked": {row.name: row.reason for row in table.ranking.unranked},
    }


def collect_ranked_row(row: RankedEntry, table: BoardTable) -> Numbers:
    b, seeds = row.behind, table.seeds.get(row.name, {})
    return {
        "tier": row.tier,
        "overall": [row.overall, table.seed_errors.scores[row.name].ci95],
        "behind leader": b and {"gap": b.gap, "ci95": b.ci95, "p": row.p, "n": b.n},
        "columns": {column: [s.mean, s.ci95, s.n] for column, s in row.scores.items()},
        "seeds": {seed: entry.overall for seed, entry in seeds.items()},
    }


PLAIN = CASES["plain"]
"""Entry -> what distinguishes plain training in the file where a table has it several times."""


def collect_methods() -> Numbers:
    """Return board -> conditions -> plan -> method, as the file calls it -> its gains."""
    numbers: Numbers = {}
    for board in BOARDS:
        tracks = numbers[board] = {}
        for methods in (methods for table in rank(board) for methods in build_from_table(table)):
            names = {row.name: row.method for row in methods.rows}
            if [*names.values()].count("normal") > 1:
                names |= {n: f"normal ({PLAIN[n]})" for n, m in names.items() if m == "normal"}
            plans: dict[str, Numbers] = defaultdict(dict)
            for row in methods.rows:
                key = row.plan or "no training"
                plans[key][names[row.name]] = collect_method_row(row, names)
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


def find_differences(section: str) -> list[str]:
    """Return what differs from the golden file in one section."""
    tolerance = FEATURES if section == "features" else EXACT
    was, now = read_golden().get(section, {}), to_plain(SECTIONS[section]())
    return compare({section: was}, {section: now}, tolerance)


if __name__ == "__main__":
    if "--write" in sys.argv:
        written = write_json({name: to_plain(collect()) for name, collect in SECTIONS.items()})
        GOLDEN.write_text(written + "\n", encoding="utf8")
    else:
        differences = [line for section in SECTIONS for line in find_differences(section)]
        print("\n".join(differences) or "no number differs")
        sys.exit(bool(differences))
