"""Nothing is believed that can be recomputed: every kind of tampering is named with its file."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import fakes

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import read_json, read_record, replacing
from fsbench.core.schema import BackboneFacts, Result
from fsbench.results import episode_records, parquet, probe_records, read, verification
from fsbench.results.summary import digest_records


@pytest.fixture
def file(tmp_path: Path) -> Path:
    fakes.write(tmp_path)
    return next(tmp_path.rglob("5w*.json"))


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))


def test_result_records_survive_a_round_trip(file: Path) -> None:
    result = read(file)[0]
    assert Result.model_validate_json(result.model_dump_json()) == result


EDITS: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("score", lambda d: d["score"].update(mean=0.99)),
    ("score", lambda d: d["score"].update(ci95=0.0)),
    ("score", lambda d: d["score"].update(n=600)),
    ("score", lambda d: d.update(collapsed=3)),
    ("score", lambda d: d.update(non_finite=1)),
    ("score", lambda d: d.update(details={"lr": 1.0})),
    ("records-digest", lambda d: d.update(records_digest="0" * 64)),
    ("spec-digest", lambda d: d.update(spec_digest="0" * 64)),
    ("spec-digest", lambda d: d["spec"]["head"].update(lr=0.5)),
    ("task", lambda d: d.update(task="eurosat:5w1s/linear@ibm")),
    ("flags", lambda d: d.update(flags=[])),
    ("flags", lambda d: d.update(flags=["custom", "limited"])),
    ("pool", lambda d: d["dataset"].update(pool="labeled_80")),
    ("dataset", lambda d: d["dataset"].update(class_ids=[0, 1, 2, 3, 4, 4])),
    ("dataset", lambda d: d["dataset"].update(class_counts=[30] * 5)),
    ("rows", lambda d: d["dataset"].update(class_ids=[0, 1, 2, 3, 4, 9])),
]


@pytest.mark.parametrize(("code", "change"), EDITS)
def test_an_edited_result_is_refused(
    code: str, change: Callable[[dict[str, Any]], object], file: Path
) -> None:
    edit(file, change)
    with pytest.raises(ValidationFailed) as caught:
        read(file)
    assert f"[{code}] {file}" in str(caught.value)
    assert "fix:" in str(caught.value)


@pytest.mark.parametrize("together", [0, 2**20])
def test_many_at_a_time_keep_the_same_rules(
    together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right ones are those that reading one by one accepts, whatever is wrong with others."""
    monkeypatch.setattr(verification, "TOGETHER", together)
    for i in range(8):
        fakes.write(tmp_path, name=f"m{i}")
    fakes.write_probe(tmp_path, 0.5, name="probed")
    files = verification.result_files(tmp_path)
    for file, change in zip(files, (EDITS[0], EDITS[7], EDITS[11], EDITS[15]), strict=False):
        edit(file, change[1])
    files[4].with_suffix(".parquet").write_bytes(b"no")
    files[5].with_suffix(".parquet").unlink()
    files[6].write_text("{")
    accepted = list(verification.select_verified(files))
    assert [cell.path for cell in accepted] == files[7:]
    for cell in accepted:
        alone = verification.read_verified(cell.path)
        assert alone.result == cell.result
        assert digest_records(alone.records) == digest_records(cell.records)
    for file in files[:7]:
        with pytest.raises(ValidationFailed):
            verification.read_verified(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(extra=1), "unknown key 'extra'"),
        (lambda d: d.update(schema_version=9), "schema_version"),
        (lambda d: d["score"].update(mean=57.75), "score.mean"),
        (lambda d: d["score"].update(mean=float("nan")), "NaN is not finite"),
        (lambda d: d["score"].update(ci95=float("inf")), "Infinity is not finite"),
        (lambda d: d.pop("provenance"), "provenance: Field required"),
        (lambda d: d.update(records="../../x.parquet"), "points to the records"),
    ],
)
def test_schema_errors_name_file_and_field(
    change: Callable[[dict[str, Any]], object], message: str, file: Path
) -> None:
    edit(file, change)
    with pytest.raises(ValidationFailed, match=message) as caught:
        read(file)
    assert str(file) in str(caught.value)


def test_a_flipped_outcome_is_found(file: Path) -> None:
    records = episode_records(file)
    records.correct[7, 1, 2] ^= True
    parquet.write_records(file.with_suffix(".parquet"), records)
    with pytest.raises(ValidationFailed, match="records-digest"):
        read(file)


def forge(file: Path, **columns: object) -> None:
    """Other records, with the digest made to fit."""
    records = episode_records(file)
    for name, values in columns.items():
        object.__setattr__(records, name, values)
    parquet.write_records(file.with_suffix(".parquet"), records)
    edit(file, lambda d: d.update(records_digest=digest_records(records)))


def test_repeated_and_foreign_rows_are_found(file: Path) -> None:
    forge(file, index=np.zeros(fakes.N_EPISODES, np.int64))
    with pytest.raises(ValidationFailed, match="unsorted or twice"):
        read(file)


def test_one_class_twice_in_an_episode_is_found(file: Path) -> None:
    forge(file, class_ids=np.ones((fakes.N_EPISODES, 5), np.int64))
    with pytest.raises(ValidationFailed, match="repeated or foreign"):
        read(file)


def test_a_missing_parquet_is_named(file: Path) -> None:
    file.with_suffix(".parquet").unlink()
    with pytest.raises(ValidationFailed, match=r"\.parquet are missing"):
        read(file)


def test_a_renamed_pair_is_refused(file: Path) -> None:
    for suffix in (".json", ".parquet"):
        file.with_suffix(suffix).rename(file.with_name(f"5w5s-linear{suffix}"))
    edit(file.with_name("5w5s-linear.json"), lambda d: d.update(records="5w5s-linear.parquet"))
    with pytest.raises(ValidationFailed, match="file-name"):
        read(file.parent)


def test_a_probe_curve_must_fit_its_outcomes(tmp_path: Path) -> None:
    fakes.write_probe(tmp_path)
    file = next(tmp_path.rglob("probe*.json"))
    records = probe_records(file)
    for value, code in ((0.123, "curve"), (np.nan, "non-finite")):
        curve = records.curve.copy()
        curve[1, -1] = value
        forged = replace(records, curve=curve)
        parquet.write_records(file.with_suffix(".parquet"), forged)
        digest = digest_records(forged)
        edit(file, lambda d, digest=digest: d.update(records_digest=digest))
        with pytest.raises(ValidationFailed, match=code):
            read(file)


def test_episodes_and_probes_are_not_mixed_up(tmp_path: Path, file: Path) -> None:
    fakes.write_probe(tmp_path)
    with pytest.raises(UsageError, match="is a probe"):
        episode_records(next(tmp_path.rglob("probe*.json")))
    with pytest.raises(UsageError, match="no linear probe"):
        probe_records(file)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', "[" * 100_000, "{", '{"a": NaN}', "\xff\xfe", ""],
)
def test_hostile_json_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(ValidationFailed, match=r"x\.json is no readable JSON"):
        read_json(path)


def test_huge_json_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as out:
        out.truncate(5 * 2**20)
    with pytest.raises(ValidationFailed, match="larger than"):
        read_json(path)


def test_values_never_enter_schema_messages(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"ref": ["\x1b[31mred"] * 10_000}))
    with pytest.raises(ValidationFailed) as caught:
        read_record(path, BackboneFacts)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def interrupted() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
