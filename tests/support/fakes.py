"""Small results without a network: outcomes drawn at a known accuracy over real episodes."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fsbench.core.records import EpisodeRecords, ProbeRecords, Records
from fsbench.core.schema import BackboneFacts, DatasetRecord, Declaration, Flag, Provenance, Result
from fsbench.core.seeding import uniforms
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, ImageSpec, ProbeSpec, Spec
from fsbench.results.outcomes import digest_records
from fsbench.results.store import ResultStore
from fsbench.results.verification import read_loaded

N_EPISODES = 40


def facts(name: str = "a", **changes: object) -> BackboneFacts:
    """A run's backbone; its weights hash follows from the name."""
    values: dict[str, object] = {
        "ref": f"run:runs/{name}",
        "source": "run",
        "architecture": "toy_resnet",
        "feature_dim": 8,
        "features": "global average pooling",
        "input_size": 32,
        "mean": (0.5, 0.5, 0.5),
        "std": (0.25, 0.25, 0.25),
        "n_parameters": 10,
        "weights_hash": hashlib.sha256(name.encode()).hexdigest(),
        "source_accuracy": 0.25,
    }
    return BackboneFacts.model_validate(values | changes)


def dataset(name: str = "folder-blobs", flags: tuple[Flag, ...] = ("custom",)) -> DatasetRecord:
    """Six classes of thirty images."""
    return DatasetRecord(
        name=name,
        class_ids=tuple(range(6)),
        class_names=tuple("uvwxyz"),
        class_counts=(30,) * 6,
        images_hash="b" * 64,
        fingerprint="c" * 64,
        flags=flags,
    )


def official(name: str = "toy_tiles", subset: bool = False, images: str = "e") -> DatasetRecord:
    """A data set of the suite, unflagged, or a subset: all images but one.

    Where classes have no official counts, the images are spread over them.
    """
    from fsbench.data.catalog import all_facts

    facts = all_facts()[name]
    n, classes = facts.n_images - subset, len(facts.classes)
    spread = tuple(n // classes + (i < n % classes) for i in range(classes))
    return DatasetRecord(
        name=name,
        class_ids=tuple(range(classes)),
        class_names=facts.classes,
        class_counts=facts.images_per_class or spread,
        images_hash="d" * 64,
        fingerprint=("b" if subset else images) * 64,
        flags=("subset",) if subset else (),
    )


def episodic(shots: int = 1, n_episodes: int = N_EPISODES) -> EpisodicSpec:
    return EpisodicSpec(
        episode=EpisodeSpec(k_shot=shots, n_query=5),
        n_episodes=n_episodes,
        image=ImageSpec(input_size=32),
    )


def probe() -> ProbeSpec:
    return ProbeSpec(image=ImageSpec(input_size=32), epochs=3, split="derived_80_20")


def provenance(**changes: object) -> Provenance:
    values: dict[str, object] = {
        "command": "fsbench benchmark -m run:runs/a",
        "fsbench": "0.1.0",
        "git_commit": None,
        "python": "3.12.0",
        "packages": {"torch": "2.15.0"},
        "platform": "Linux x86_64",
        "device": "cpu",
        "cpu_capability": "AVX2",
        "threads": 1,
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.5,
    }
    return Provenance.model_validate(values | changes)


def episodes(
    spec: EpisodicSpec, data: DatasetRecord, index: Iterable[int], accuracy: float, name: str = "a"
) -> EpisodeRecords:
    """Outcomes at the given accuracy; those of one episode never depend on the others."""
    numbers = np.array(sorted(index), dtype=np.int64)
    shape = (spec.episode.n_way, spec.episode.n_query)
    draws = [uniforms(shape, name, data.name, spec.label, int(i)) for i in numbers]
    return EpisodeRecords(
        numbers,
        np.array(draws) < accuracy,
        np.zeros(numbers.size, np.bool_),
        np.ones(numbers.size, np.bool_),
    )


def predict(records: EpisodeRecords) -> EpisodeRecords:
    """The records with predictions: a wrong query is taken for the class after its own."""
    n_way, n_query = records.correct.shape[1:]
    truth = np.repeat(np.arange(n_way), n_query)
    wrong = ~records.correct.reshape(len(records.index), -1)
    return replace(records, predicted=((truth + wrong) % n_way).astype(np.uint8))


def probe_records(accuracy: float, name: str = "a", n_test: int = 37) -> ProbeRecords:
    """Three learning rates; the second is the best, the last epoch a little below the best one."""
    lrs = np.array(probe().lrs)
    draws = uniforms((3, n_test), name, "probe")
    best = draws < np.array([0.5, 1.0, 0.2])[:, None] * accuracy
    last = best & (draws > 0.05)
    curve = np.stack([last.mean(1), best.mean(1), last.mean(1)], axis=1)
    return ProbeRecords(lrs, curve, last, best)


def store(
    root: Path,
    spec: Spec,
    records: Records,
    *,
    name: str = "a",
    data: DatasetRecord | None = None,
    backbone: BackboneFacts | None = None,
    block: int = 0,
    **changes: object,
) -> Result:
    """Write records as a result below `root`; changes go to the provenance."""
    target = ResultStore(root, backbone or facts(name), data or dataset(), spec)
    if not isinstance(records, EpisodeRecords):
        return target.write(records, provenance=provenance(**changes))
    target.write_block(block, records)
    return target.finish(records.index.tolist(), provenance=provenance(**changes))


def write(
    root: Path,
    accuracy: float = 0.6,
    *,
    name: str = "a",
    shots: int = 1,
    data: DatasetRecord | None = None,
    index: Iterable[int] = range(N_EPISODES),
    **changes: Any,
) -> Result:
    """Write one episodic result; changes as in `store`."""
    data, spec = data or dataset(), episodic(shots)
    records = episodes(spec, data, index, accuracy, name)
    return store(root, spec, records, name=name, data=data, **changes)


def write_probe(
    root: Path, accuracy: float = 0.6, *, name: str = "a", data: DatasetRecord | None = None
) -> Result:
    return store(root, probe(), probe_records(accuracy, name), name=name, data=data)


def digests(*folders: Path) -> dict[str, str]:
    """Weights and column -> digest of the outcomes, of all results in these folders."""
    results = (loaded for folder in folders for loaded in read_loaded(folder))
    return {
        f"{one.result.backbone.identity} {one.result.column}": digest_records(one.records)
        for one in results
    }


DECLARATION = Declaration(
    name="entry",
    authors="A. Author",
    link="https://example.org",
    license="MIT",
    pretraining_data=("toy_source",),
    targets_seen=(),
    statement="One run.",
)


def declare(folder: Path, **changes: object) -> Path:
    """Write the declaration into a results folder, where submit finds it."""
    path = folder / "declaration.yaml"  # YAML includes JSON
    path.write_text(DECLARATION.model_copy(update=changes).model_dump_json())
    return path


def add_entry(
    board: Path,
    name: str = "entry",
    accuracy: float = 0.6,
    *,
    shots: Iterable[int] = (1,),
    replace: bool = False,
    **changes: Any,
) -> Path:
    """Submit results of a network to a board, and return their folder beside it.

    changes: as in `write`; the network is called as the entry.
    """
    from fsbench.api.submit import submit

    results = board.parent / f"results-{name}"
    for k in shots:
        write(results, accuracy, shots=k, **{"name": name} | changes)
    submit(results, board, DECLARATION.model_copy(update={"name": name}), replace=replace)
    return results
