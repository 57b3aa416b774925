"""Benchmarks judge only what they can: ratios, refusals and rows; never how long anything takes."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from benchmarks import __main__ as command
from benchmarks import gpu, growth, pairing
from benchmarks.comparisons import Case
from benchmarks.pairing import Measurement, Round
from support import readme

STEADY, NOISY = [Round(4.0, 1.0, 1.0)], [Round(4.0, 1.0, 1.2)]


def make_case(rounds: list[Round], bound: float | None = None, work: str = "work") -> Case:
    class Timed(Case):
        def take_rounds(self, settings: pairing.Settings) -> list[Round]:
            return rounds

    return Timed(work, "a loop", "fsbench work", "images/s", bound, make_sides=None)  # type: ignore[arg-type]


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Pretend that nothing else runs, stay in this process, and write to a folder of the test."""
    monkeypatch.setattr(pairing.os, "getloadavg", lambda: (0.1, 0.1, 0.1))
    monkeypatch.setattr(command, "in_fresh_processes", lambda take, args, n: [take(*args)] * n)
    monkeypatch.setattr(growth, "measure", lambda quick: [{"work": "growth"}])
    page = tmp_path / "page.md"
    page.write_text("<!-- table: speed -->\n<!-- end -->\n")
    for module in (command, readme):
        monkeypatch.setattr(module, "MEASURED", tmp_path / "measured.json")
    monkeypatch.setattr(command, "PAGE", page)
    return page


def run(monkeypatch: pytest.MonkeyPatch, cases: dict[str, Case], *words: str) -> None:
    monkeypatch.setattr(command, "CASES", cases)
    monkeypatch.setattr("sys.argv", ["benchmarks", "--threads", "1", *words])
    command.main()


def test_a_ratio_is_the_median_over_processes_of_medians_of_rounds() -> None:
    def rounds(*plain: float) -> list[Round]:
        return [Round(seconds, 2.0, 3.0) for seconds in plain]

    measured = Measurement([rounds(2, 4, 40), rounds(8), rounds(6)])
    assert measured.values("ratio") == [2, 3, 4]
    assert [measured.median(f) for f in ("ratio", "plain", "ours", "noise")] == [3, 6, 2, 3]


@pytest.mark.parametrize(
    ("plain", "noise", "bound", "verdict"),
    [
        (0.96, 1.0, 0.95, "holds"),
        (0.94, 1.0, 0.95, "missed"),
        (0.5, 1.1, None, ""),
        (9.0, 0.89, 0.95, "no verdict"),
        (9.0, 1.11, 0.95, "no verdict"),
    ],
)
def test_a_verdict_compares_the_ratio_with_its_bound(
    plain: float, noise: float, bound: float | None, verdict: str
) -> None:
    """There is none where the same work takes another time."""
    assert Measurement([[Round(plain, 1.0, noise)]]).judge(bound) == verdict


def test_trials_and_busy_machines_write_nothing_and_noisy_rows_are_left_out(
    quiet: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {"steady": make_case(STEADY), "noisy": make_case(NOISY, 0.9, "noisy")}
    run(monkeypatch, cases, "--quick")
    assert "bound >= 0.9: not judged" in capsys.readouterr().out
    with monkeypatch.context() as busy:
        busy.setattr(pairing.os, "getloadavg", lambda: (1.4, 0.1, 0.1))
        with pytest.raises(SystemExit, match=r"the load average is 1\.4, allowed is 1"):
            run(monkeypatch, cases)
    assert [file.name for file in quiet.parent.iterdir()] == ["page.md"]
    with pytest.raises(SystemExit, match=r"noisy: no verdict: .* 1\.20 times as long again"):
        run(monkeypatch, cases)
    assert "bound >= 0.9: no verdict" in capsys.readouterr().out
    assert [row["work"] for row in json.loads(readme.MEASURED.read_text())["rows"]] == ["work"]


def test_a_whole_run_writes_rows_machine_and_table_and_a_part_nothing(
    quiet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = {"a": make_case(STEADY, 5.0), "other": make_case(STEADY, None, "other")}
    run(monkeypatch, cases, "--rows", "a", "growth")
    assert not readme.MEASURED.exists()
    run(monkeypatch, cases)
    record = json.loads(readme.MEASURED.read_text())
    assert {"processor", "cores", "threads", "torch", "date"} <= record["machine"].keys()
    first, second = record["rows"]
    assert (first["theirs"], first["fsbench"]) == ("0.25 images/s", "1 images/s")
    assert (first["ratio"], first["bound"]) == ("4.00 (4.00 to 4.00)", ">= 5: missed")
    assert (second["compared with"], second["bound"]) == ("a loop", "")
    page = quiet.read_text()
    assert "`fsbench work`" in page
    assert readme.fill(page) == page


def test_a_run_on_a_gpu_writes_rows_outcomes_of_tests_and_machine(
    quiet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_tests(words: list[str], plugins: list[gpu.Outcomes]) -> None:
        crash = SimpleNamespace(reprcrash=SimpleNamespace(message="assert 1\nmore"))
        reasons = {"passed": None, "skipped": ("file", 1, "1 GPU here"), "failed": crash}
        for outcome, reason in reasons.items():
            fields = {"nodeid": outcome[0], "when": "call", "user_properties": [("GB", 3)]}
            plugins[0].pytest_runtest_logreport(
                SimpleNamespace(outcome=outcome, longrepr=reason, **fields)
            )

    monkeypatch.setattr(gpu, "MEASURED", quiet.with_name("gpu.json"))
    monkeypatch.setattr(gpu, "GPU_CASES", {"a": make_case(STEADY)})
    monkeypatch.setattr(gpu, "describe_gpus", lambda: {"GPUs": "1"})
    monkeypatch.setattr(pytest, "main", run_tests)
    monkeypatch.setattr("sys.argv", ["gpu", "--threads", "1"])
    for is_here, says in ((False, "no GPU: torch finds none"), (True, "^f: failed: assert 1$")):
        assert not gpu.MEASURED.exists()
        monkeypatch.setattr(torch.cuda, "is_available", lambda is_here=is_here: is_here)
        with pytest.raises(SystemExit, match=says):
            gpu.main()
    record = json.loads(gpu.MEASURED.read_text())
    assert record["machine"]["GPUs"] == "1"
    assert [row["ratio"] for row in record["rows"]] == ["4.00 (4.00 to 4.00)"]
    outcomes = {"skipped": {"s": "1 GPU here"}, "failed": {"f": "assert 1"}}
    assert record["tests"] == {"passed": 1, **outcomes, "measured": {"p": {"GB": 3}}}
