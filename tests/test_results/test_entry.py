"""Two files that are one: kills, other processes, full disks and folders that cannot be written."""

import errno
import resource
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fakes
from support.reading import read
from support.writers import SHARED, die, grow, open_store, start, write_as_nobody, write_tasks

from fsbench.core.errors import ValidationFailed
from fsbench.core.io import TEMPORARY
from fsbench.core.records import ImageRecords, Records
from fsbench.core.schema import Result
from fsbench.core.specs import ImageSpec, KnnSpec
from fsbench.results import assembly, entry, outcomes
from fsbench.results.entry import ENTRY_FILE, read_entry, write_entry
from fsbench.results.outcomes import digest_records
from fsbench.results.verification import read_loaded, read_verified

ROOT = Path(__file__).parents[2]
HEADING = "### Read an entry with pandas"
SHOTS = (1, 2, 3, 4)
PACKAGES = {"torch": "2.15.0", "numpy": "2.4.0"}


def home(root: Path) -> Path:
    return root / "a" / fakes.facts().identity[:12]


def shown(root: Path) -> list[str]:
    """Files of the model but its lock, and what a killed process was writing."""
    names = sorted(path.name for path in home(root).iterdir())
    return [n for n in names if n != ".lock" and not n.endswith(TEMPORARY)]


networks = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.one_of(st.integers(1, 3), st.just("probe"), st.just("knn")),
        st.sampled_from(["eurosat", "isic"]),
    ),
    min_size=1,
    max_size=8,
    unique=True,
)


def make(name: str, kind: int | str, target: str) -> tuple[Result, Records]:
    """A result of a model, a shot or kind of probe, and a data set."""
    spec = fakes.probe() if kind == "probe" else KnnSpec(image=ImageSpec(input_size=32))
    records: Records = fakes.probe_records(0.5, name + target)
    if kind == "knn":
        records = ImageRecords(np.arange(37) % 3 == 0)
    data = fakes.official(target)
    if isinstance(kind, int):
        spec = fakes.episodic(kind)
        records = fakes.episodes(spec, data, range(4), 0.6, name)
    cost = {"macs": 5, "images_per_second": 0.5, "peak_memory_bytes": 0, "machine": "a processor"}
    made = fakes.provenance(
        packages=PACKAGES if name == "a" else dict(sorted(PACKAGES.items())),
        seconds=len(name + target),
        threads=1 + (target == "isic"),
        cost=cost if target == "isic" else None,
    )
    return assembly.build_result(fakes.facts(name), data, spec, records, False, made), records


@settings(max_examples=30)
@given(cells=networks, data=st.data())
def test_an_entry_comes_back_equal_in_any_order(
    cells: list[tuple[str, int | str, str]],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Every model, data set, spec and environment is stated once."""
    folder = tmp_path_factory.mktemp("entry")
    made = {cell: make(*cell) for cell in cells}
    controls = {made[cells[0]][0].backbone.identity}
    written = write_entry(folder, made.values(), controls, declaration=fakes.DECLARATION)
    entry_file = read_entry(folder)
    assert (entry_file.file, entry_file.digest) == (written.file, written.digest)
    results = {(c.result.backbone.ref[9:], str(c.result.column)): c for c in entry_file.loaded}
    for (name, *_), (result, records) in made.items():
        cell = results.pop((name, str(result.column)))
        assert cell.result == result
        assert digest_records(cell.records) == digest_records(records)
    assert not results
    file = entry_file.file
    assert {file.models[i].identity for i in file.controls} == controls
    for parts, place_of in ((file.models, 0), (file.datasets, 2), (file.environments, 2)):
        assert len(parts) == len({cell[place_of] for cell in cells})
    assert len(file.costs) == ("isic" in {target for *_, target in cells})
    assert ('"costs"' in (folder / ENTRY_FILE).read_text()) == bool(file.costs)
    again = write_entry(folder, data.draw(st.permutations(list(made.values()))), controls,
                        declaration=fakes.DECLARATION)  # fmt: skip
    assert again.digest == written.digest


KILLS = [("outcomes", "end", 20), (ENTRY_FILE, "end", 20), ("outcomes", "clean", 40)]


@pytest.mark.parametrize(("name", "when", "n"), KILLS)
def test_a_kill_leaves_the_old_pair_or_the_new_and_no_episode_is_lost(
    name: str, when: str, n: int, tmp_path: Path
) -> None:
    grow(tmp_path, 1, 0, 20)
    process = start(die, tmp_path, name, when)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (left,) = read(tmp_path)
    assert left.score.n == n
    target = open_store(tmp_path)
    assert target.missing_blocks({0: range(40)}) == []
    whole = target.finish(range(40), provenance=fakes.provenance())
    assert whole == grow(tmp_path / "whole", 1, 0, 40)
    assert shown(tmp_path) == shown(tmp_path / "whole"), "nothing else is left behind"


def test_processes_that_write_one_model_lose_nothing(tmp_path: Path) -> None:
    """They have tasks of their own and halves of one; who reads meanwhile sees whole entries."""
    writers = [start(write_tasks, tmp_path, SHOTS[i::2], 20 * i) for i in range(2)]
    sizes = [0]
    while any(process.is_alive() for process in writers):
        if (home(tmp_path) / ENTRY_FILE).is_file():
            sizes.append(sum(cell.result.score.n for cell in read_loaded(tmp_path)))
    assert [process.exitcode for process in writers] == [0, 0]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 2, "it was read while it grew"
    for k in (*SHOTS, SHARED):
        grow(tmp_path / "alone", k, 0, 40)
    together, alone = (
        {cell.result.task: cell for cell in read_loaded(root)}
        for root in (tmp_path / "a", tmp_path / "alone")
    )
    assert together.keys() == alone.keys()
    for task, cell in together.items():
        assert cell.result == alone[task].result
        assert digest_records(cell.records) == digest_records(alone[task].records)
    assert shown(tmp_path) == shown(tmp_path / "alone")


@pytest.mark.parametrize("lacking", ["block", "outcomes", ENTRY_FILE])
def test_a_full_disk_is_an_error_and_leaves_the_old_entry(tmp_path: Path, lacking: str) -> None:
    """A file system has room for files of some size, but not for this one."""
    grow(tmp_path, 1, 0, 20)
    before = {name: (home(tmp_path) / name).read_bytes() for name in shown(tmp_path)}
    described, packed = (len(content) for content in before.values())
    room = {"block": packed // 2, "outcomes": packed + 20, ENTRY_FILE: described - 100}[lacking]
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            grow(tmp_path, 1, 20, 40)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.errno == errno.EFBIG
    for name, content in before.items():
        assert (home(tmp_path) / name).read_bytes() == content
    assert not [p for p in home(tmp_path).iterdir() if p.name.endswith((".tmp", ".part"))]
    assert grow(tmp_path, 1, 20, 40).score.n == 40
    assert len(shown(tmp_path)) == 2


def test_a_read_only_folder_is_an_error_and_keeps_its_entry() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (before,) = [grow(root, 1, 0, 20)]
        for path in (root, *root.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        process = start(write_as_nobody, root)
        process.join()
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)
        assert process.exitcode == errno.EACCES
        assert read(root) == [before]


def test_an_entry_that_no_reader_would_take_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = grow(tmp_path, 1, 0, 20)
    for module, bound in ((outcomes, "MAX_BYTES"), (outcomes, "MAX_FILE"), (entry, "MAX_ENTRY")):
        with monkeypatch.context() as patch:
            patch.setattr(module, bound, 300)
            with pytest.raises(ValidationFailed, match="would be larger than 300 bytes"):
                write_entry(home(tmp_path), [make("a", 1, "eurosat")])
        assert read(tmp_path) == [before]


def test_the_readme_reads_an_entry_with_pandas(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its lines give the mean and the interval that entry.json states, for every column."""
    section = (ROOT / "leaderboard/README.md").read_text(encoding="utf8").split(HEADING, 1)[1]
    code = section.split("```python\n", 1)[1].split("```", 1)[0]
    assert len([line for line in code.splitlines() if line and "import" not in line]) == 6
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(code, names)
    cells = read_verified(names["entry"]).loaded
    assert len(cells) > 1
    for i, cell in enumerate(cells):
        assert names["right"].mean()[i] == pytest.approx(cell.result.score.mean, abs=1e-12)
        assert 1.96 * names["right"].sem()[i] == pytest.approx(cell.result.score.ci95, abs=1e-12)
    assert str([str(cell.result.column) for cell in cells]) in capsys.readouterr().out
