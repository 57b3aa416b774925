"""Read the two files of an entry without fsbench."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class StoredResult(NamedTuple):
    """A result of episodes: numbers (E,), and which queries are right, (E, n_way * n_query).

    model: its reference, e.g. run:sweep/runs/pilot-normal-s0.
    """

    column: str
    model: str
    dataset: str
    spec: dict[str, Any]
    numbers: NDArray[np.int64]
    correct: NDArray[np.bool_]


def read_results(entry: Path) -> list[StoredResult]:
    """Return the results of the folder of an entry, in the order of entry.json."""
    file = json.loads((entry / "entry.json").read_text(encoding="utf8"))
    (path,) = entry.glob("outcomes-*.arrow.zst")
    with pa.input_stream(path, compression="zstd") as stream:
        table = pa.ipc.open_file(stream.read()).read_all()
    results, numbers = (table[name].to_numpy() for name in ("result", "row"))
    found = []
    for i, line in enumerate(file["results"]):
        spec, rows = file["specs"][line["spec"]], np.flatnonzero(results == i)
        queries = spec["episode"]["n_query"]
        packed = [np.frombuffer(bits, np.uint8) for bits in table["correct"].take(rows).to_pylist()]
        by_class = np.array(packed).reshape(len(rows), spec["episode"]["n_way"], -1)
        right = np.unpackbits(by_class, axis=-1, count=queries).astype(bool)
        dataset = file["datasets"][line["dataset"]]["name"]
        found.append(
            StoredResult(
                line["column"],
                file["models"][line["model"]]["ref"],
                dataset,
                spec,
                numbers[rows].astype(np.int64),
                right.reshape(len(rows), -1),
            )
        )
    return found
