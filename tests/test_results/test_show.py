"""fsbench show and results merge, through the command line."""

from pathlib import Path

from support import fakes
from support.cli import CommandLine

from fsbench.results import table


def test_several_models_stand_side_by_side(tmp_path: Path, cli: CommandLine) -> None:
    a = fakes.write(tmp_path / "x", 0.6)
    fakes.write(tmp_path / "x", 0.6, shots=5)
    b = fakes.write(tmp_path / "y", 0.8, name="b")
    probe = fakes.write_probe(tmp_path / "y", name="b")
    shown = cli("show", tmp_path / "x", tmp_path / "y")
    lines = {line.split("  ")[0].strip(): line for line in shown.out.splitlines() if line.strip()}
    assert shown.out.splitlines()[0] == "results: linear@ibm 32px · custom"
    head = lines["task"].split()
    assert head == ["task", "a", "b", "difference", "flags"]
    one = lines["folder-blobs:5w1s n_query=5"]
    for result in (a, b):
        ci = result.score.ci95 or 0
        assert f"{100 * result.score.mean:.2f} ± {100 * ci:.2f}" in one
    assert one.split()[-2:] == [f"{100 * (b.score.mean - a.score.mean):+.2f}", "-"]
    assert lines["folder-blobs:5w5s n_query=5"].split()[-3:] == ["-", "-", "-"]
    assert f"{100 * probe.score.mean:.2f}" in lines["folder-blobs:probe"]
    assert lines["folder-blobs:probe"].split()[-1] == "derived"
    assert lines["source (in-domain)"].split()[-4:] == ["25.00", "25.00", "-", "-"]
    assert "second minus first of two models" in shown.err
    assert "as SEAL reports" in shown.err


def test_wide_tables_state_where_facts_about_preprocessing_come_from(
    tmp_path: Path, cli: CommandLine
) -> None:
    facts = {"input_size": "timm's tag a1_in1k", "mean": "the user", "std": "the user"}
    fakes.write(tmp_path / "x", 0.6, backbone=fakes.facts(stated_by=facts))
    assert "32 px (timm's tag a1_in1k), mean " in cli("show", tmp_path / "x", "--wide").err
    assert "timm's tag" not in cli("show", tmp_path / "x").err


def test_rows_are_ordered_by_data_set_and_shots(tmp_path: Path) -> None:
    results = [fakes.write(tmp_path, shots=k) for k in (20, 1, 5)] + [fakes.write_probe(tmp_path)]
    rows = table.build_table(results).rows
    tasks = [row[0].partition(":")[2].split("/")[0].split(" ")[0] for row in rows[:-1]]
    assert tasks == ["probe", "5w1s", "5w5s", "5w20s"]


def test_two_weights_of_one_name_are_told_apart(tmp_path: Path) -> None:
    other = fakes.facts(weights_hash="0" * 64)
    results = [fakes.write(tmp_path), fakes.write(tmp_path, backbone=other)]
    columns = table.build_table(results).columns
    assert columns == ("task", f"a {fakes.facts().weights_hash[:6]}", "a 000000", "difference")


def test_models_go_by_the_name_of_their_folder(tmp_path: Path, cli: CommandLine) -> None:
    """A name given by --name when the results were made."""
    fakes.write(tmp_path)
    (tmp_path / "a").rename(tmp_path / "my-net")
    assert cli("show", tmp_path).out.split()[3:5] == ["task", "my-net"]


def test_collapsed_episodes_are_told(tmp_path: Path) -> None:
    result = fakes.write(tmp_path).model_copy(update={"collapsed": 2, "non_finite": 1})
    note = table.build_table([result]).note
    assert note.endswith(
        "2 of 40 episodes predicted one class for every query, 1 of 40 episodes had non-finite "
        "outputs (kept in the mean)"
    )


def test_merge_command(tmp_path: Path, cli: CommandLine) -> None:
    fakes.write(tmp_path / "a", index=range(20))
    fakes.write(tmp_path / "b", index=range(20, 40))
    assert (
        "merged 2 parts"
        in cli("results", "merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out").err
    )
    cli("show", tmp_path / "out")


def test_errors_have_codes_and_a_way_out(tmp_path: Path, cli: CommandLine) -> None:
    fakes.write(tmp_path / "a", index=range(5))
    fakes.write(tmp_path / "b", index=range(7, 9))
    cli("results", "merge", tmp_path / "a", "-o", tmp_path / "out", code=2)
    parts = (tmp_path / "a", tmp_path / "b")
    assert "episodes 5-6" in cli("results", "merge", *parts, "-o", tmp_path / "out", code=5).err
    next(tmp_path.rglob("outcomes-*")).unlink()
    assert ".arrow.zst cannot be read: No such file" in cli("show", tmp_path, code=5).err
