"""Benchmarks judge only what they can: ratios, refusals and rows; never how long anything takes."""

import json
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import growth, pairing
from benchmarks.comparisons import Case
from benchmarks.pairing import Measurement, NoVerdict, Round
from support import readme

STEADY: list[Round] = [{"ours": 1.0, "plain": 4.0, "again": 1.0}]
NOISY: list[Round] = [{"ours": 1.0, "plain": 4.0, "again": 1.2}]


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


def run(monkeypatch: pytest.MonkeyPatch, cases: dict[str, Case], *words: str) -> int:
    monkeypatch.setattr(command, "CASES", cases)
    monkeypatch.setattr("sys.argv", ["benchmarks", "--threads", "1", *words])
    return command.main()


def test_a_ratio_is_the_median_over_processes_of_medians_of_rounds() -> None:
    def rounds(*plain: float) -> list[Round]:
        return [{"ours": 1.0, "plain": seconds, "again": 3.0} for seconds in plain]

    measured = Measurement([rounds(2, 4, 40), rounds(8), rounds(6)])
    assert measured.ratios() == [2, 3, 4]
    assert (measured.ratio(), measured.seconds("plain"), measured.seconds("ours")) == (3, 6, 2)
    assert measured.noise == 3


def test_sides_are_warmed_and_take_turns_with_ours_around_the_plain_one() -> None:
    calls: list[str] = []

    def side(name: str) -> pairing.Callable[[], float]:
        return lambda: float(calls.append(name) is None)

    rounds = pairing.take_paired_rounds(side("plain"), side("ours"), 2)
    assert calls == ["ours", "plain", *2 * ["ours", "plain", "ours"]]
    assert rounds == [{"ours": 1.0, "plain": 1.0, "again": 1.0}] * 2


@pytest.mark.parametrize(
    ("plain", "noise", "bound", "verdict"),
    [
        (0.96, 1.0, 0.95, "holds"),
        (0.94, 1.0, 0.95, "missed"),
        (0.5, 1.1, None, ""),
        (9.0, 0.89, 0.95, None),
        (9.0, 1.11, 0.95, None),
    ],
)
def test_a_verdict_compares_the_ratio_with_its_bound(
    plain: float, noise: float, bound: float | None, verdict: str | None
) -> None:
    """There is none where the same work takes another time."""
    measured = Measurement([[{"ours": 1.0, "plain": plain, "again": noise}]])
    if verdict is not None:
        assert pairing.judge(measured, bound) == verdict
        return
    with pytest.raises(NoVerdict, match=rf"{noise:.2f} times as long again, allowed are 0.9 to"):
        pairing.judge(measured, bound)


def test_exponents_of_growth() -> None:
    sizes = (10, 100, 1000)
    assert pairing.fit_exponent(sizes, [3 * n for n in sizes]) == pytest.approx(1)
    assert pairing.fit_exponent(sizes, [n * n / 7 for n in sizes]) == pytest.approx(2)
    uses = [growth.Use(float(n), 5.0 + (n > 100) * 45) for n in sizes]
    row = growth.make_row("work", sizes, uses)
    assert row["sizes"] == "10 to 1,000"
    assert row["exponent of time"] == "1.00 (last 1.00)"
    assert row["exponent of memory"] == "0.50 (last 1.00)"


def test_a_busy_machine_writes_nothing_and_says_why(
    quiet: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pairing.os, "getloadavg", lambda: (1.4, 0.1, 0.1))
    assert run(monkeypatch, {"a": make_case(STEADY)}) == 1
    assert "the load average is 1.4, allowed is 1" in capsys.readouterr().err
    assert [file.name for file in quiet.parent.iterdir()] == ["page.md"]


def test_a_noisy_row_has_no_verdict_and_is_not_written(
    quiet: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {"steady": make_case(STEADY), "noisy": make_case(NOISY, 0.9, "noisy")}
    assert run(monkeypatch, cases) == 1
    shown = capsys.readouterr()
    assert "noisy: no verdict" in shown.err
    assert "bound >= 0.9: no verdict" in shown.out
    assert [row["work"] for row in json.loads(readme.MEASURED.read_text())["rows"]] == ["work"]


def test_a_run_writes_rows_machine_and_table_and_a_part_replaces_its_rows(
    quiet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = {"a": make_case(STEADY, 5.0), "other": make_case(STEADY, None, "other")}
    assert run(monkeypatch, cases) == 0
    record = json.loads(readme.MEASURED.read_text())
    assert {"processor", "cores", "threads", "torch", "date"} <= record["machine"].keys()
    first, second = record["rows"]
    assert (first["theirs"], first["fsbench"]) == ("0.25 images/s", "1 images/s")
    assert (first["ratio"], first["bound"]) == ("4.00 (4.00 to 4.00)", ">= 5: missed")
    assert (second["compared with"], second["bound"]) == ("a loop", "")
    page = quiet.read_text()
    assert "`fsbench work`" in page
    assert readme.fill(page) == page
    faster = {"a": make_case([{"ours": 1.0, "plain": 9.0, "again": 1.0}], 5.0)}
    assert run(monkeypatch, {**cases, **faster}, "--rows", "a") == 0
    after = json.loads(readme.MEASURED.read_text())
    assert (after["rows"][0]["bound"], after["rows"][1]) == (">= 5: holds", second)
    assert after["growth"] == record["growth"]


def test_a_trial_judges_and_writes_nothing(
    quiet: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, {"a": make_case(NOISY, 0.9)}, "--quick") == 0
    assert "bound >= 0.9: not judged" in capsys.readouterr().out
    assert [file.name for file in quiet.parent.iterdir()] == ["page.md"]


def test_a_fresh_process_may_start_processes() -> None:
    """The loops of other tools decode in worker processes."""
    arguments = (growth.use_of, (int,), 1)
    (use,) = pairing.in_fresh_processes(pairing.in_fresh_processes, arguments, 1)[0]
    assert use.memory == pairing.MEBIBYTE
