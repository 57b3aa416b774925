"""fsbench show and results merge, through the command line."""

from pathlib import Path

from support import fakes
from support.cli import CommandLine

from fsbench.results import table


def test_several_models_stand_side_by_side(tmp_path: Path, cli: CommandLine) -> None:
    """Under the names of their folders, with what --wide adds."""
    facts = {"input_size": "timm's tag a1_in1k", "mean": "the user", "std": "the user"}
    backbone = fakes.facts(stated_by=facts)
    a = fakes.write(tmp_path / "x", 0.6, backbone=backbone)
    fakes.write(tmp_path / "x", 0.6, shots=5, backbone=backbone)
    (tmp_path / "x" / "a").rename(tmp_path / "x" / "my-net")
    b = fakes.write(tmp_path / "y", 0.8, name="b")
    probe = fakes.write_probe(tmp_path / "y", name="b")
    shown = cli("show", tmp_path / "x", tmp_path / "y")
    printed = [line for line in shown.out.splitlines() if line.strip()]
    lines = {line.split("  ")[0].strip(): line for line in reversed(printed)}
    assert "results ibm 32px: linear@ibm · custom" in shown.out.splitlines()
    assert lines["task"].split() == ["task", "my-net", "b", "difference"]
    one = lines["folder-blobs:5w1s n_query=5"]
    for score in (a.score, b.score):
        assert f"{100 * score.mean:.2f} ± {100 * (score.ci95 or 0):.2f}" in one
    assert one.split()[-1] == f"{100 * (b.score.mean - a.score.mean):+.2f}"
    assert lines["folder-blobs:5w5s n_query=5"].split()[-2:] == ["-", "-"]
    assert f"{100 * probe.score.mean:.2f}" in lines["folder-blobs:probe 32px"]
    assert "results 32px · custom · derived" in shown.out.splitlines()
    assert lines["source (in-domain)"].split()[-3:] == ["25.00", "25.00", "-"]
    assert "second minus first of two models" in shown.err
    assert "as SEAL reports" in shown.err
    assert "timm's tag" not in shown.err
    assert "32 px (timm's tag a1_in1k), mean " in cli("show", tmp_path / "x", "--wide").err


def test_rows_are_sorted_weights_of_one_name_told_apart_and_collapses_noted(tmp_path: Path) -> None:
    results = [fakes.write(tmp_path, shots=k) for k in (20, 1, 5)] + [fakes.write_probe(tmp_path)]
    episodic, probed = table.build_tables(results)
    tasks = [row[0].partition(":")[2].split("/")[0].split(" ")[0] for row in episodic.rows[:-1]]
    assert tasks == ["5w1s", "5w5s", "5w20s"]
    assert probed.rows[0][0].startswith("folder-blobs:probe")
    other = fakes.write(tmp_path, backbone=fakes.facts(weights_hash="0" * 64))
    other = other.model_copy(update={"collapsed": 2, "non_finite": 1})
    (shown,) = table.build_tables([results[0], other])
    label = f"a {fakes.facts().weights_hash[:6]}"
    assert shown.columns == ("task", label, "a 000000", "difference")
    note = (
        "2 of 40 episodes predicted one class for every query, 1 of 40 episodes had non-finite "
        "outputs (kept in the mean)"
    )
    assert note in shown.note


def test_of_more_than_two_models_the_difference_is_the_range(tmp_path: Path) -> None:
    cases = (("a", 0.6), ("b", 0.9), ("c", 0.2))
    results = [fakes.write(tmp_path, accuracy, name=name) for name, accuracy in cases]
    means = [result.score.mean for result in results]
    (shown,) = table.build_tables(results)
    assert shown.rows[0][-1] == f"{100 * (max(means) - min(means)):+.2f}"
    assert "highest minus lowest of more" in shown.note


def test_merge_and_its_errors_have_codes_and_a_way_out(tmp_path: Path, cli: CommandLine) -> None:
    for part, episodes in (("a", range(20)), ("b", range(20, 40)), ("gap", range(22, 24))):
        fakes.write(tmp_path / part, index=episodes)
    a, b, gap = (tmp_path / part for part in ("a", "b", "gap"))
    assert "merged 2 parts" in cli("results", "merge", a, b, "-o", tmp_path / "out").err
    cli("show", tmp_path / "out")
    cli("results", "merge", a, "-o", tmp_path / "out", code=2)
    empty = [tmp_path / "empty" / part for part in "ab"]
    for part in empty:
        part.mkdir(parents=True)
    said = cli("results", "merge", *empty, "-o", tmp_path / "out", code=2).err
    assert "holds no results" in said
    said = cli("results", "merge", a, gap, "-o", tmp_path / "no", code=5).err
    assert "2 episodes in 20-21" in said
    next(tmp_path.rglob("outcomes-*")).unlink()
    assert ".arrow.zst cannot be read: No such file" in cli("show", tmp_path, code=5).err
