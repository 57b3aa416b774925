"""Other heads on the same episodes through the command line: settings, marks, errors."""

from pathlib import Path

import pytest
from support.cli import CommandLine
from support.reading import read

NET = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")


def test_all_heads_meet_the_same_episodes_in_one_command(tmp_path: Path, cli: CommandLine) -> None:
    heads = "linear,centroid,ridge,soft_kmeans"
    task = ("-t", "toy_scan:5w5s", "--heads", heads, "--episodes", "3")
    out = tmp_path / "results"
    shown = cli("episodic", *NET, *task, "-o", out)
    assert "toy_scan:5w5s/soft_kmeans@ibm 32px transductive" in shown.out
    assert "toy_scan:5w5s/ridge@ibm " in shown.out
    assert "normalize=" not in shown.out
    assert "transductive: sees all queries" in shown.err
    results = read(out)
    assert len(results) == 4
    assert len({result.manifest_hash for result in results}) == 1


def test_a_setting_is_a_field_of_the_spec_and_a_cell_of_its_own(
    tmp_path: Path, cli: CommandLine
) -> None:
    task = ("-t", "toy_scan:5w1s/ridge", "--episodes", "2", "-o", tmp_path)
    for options in ((), ("--set", "ridge.lam=1"), ("--set", "ridge.lam=10")):
        (record,) = cli.json("episodic", *NET, *task, *options)
        lam = 10.0 if options[1:] == ("ridge.lam=10",) else 1.0
        assert record["spec"]["fitted"] == {"normalize": "l2", "transductive": False, "lam": lam}
        assert "head" not in record["spec"]
    columns = [str(result.column) for result in read(tmp_path)]
    assert len(columns) == 2
    assert sum("lam=10.0" in column for column in columns) == 1


def test_ls_heads_tells_the_transductive_ones(cli: CommandLine) -> None:
    rows = {row["head"]: row for row in cli.json("ls", "heads")}
    assert [name for name, row in rows.items() if row["transductive"]] == ["soft_kmeans"]
    assert rows["ridge"]["settings"] == {"lam": 1.0, "normalize": "l2"}
    assert rows["ridge"]["does"].startswith("least squares")


@pytest.mark.parametrize("names", [("a", "b"), ("a", "a"), ("b", "a")])
def test_heads_of_ones_own_are_told_apart_by_name(
    names: tuple[str, str], tmp_path: Path, cli: CommandLine
) -> None:
    text = "from protocols.episodic.centroid import nearest_centroid\n"
    heads = []
    for number, name in enumerate(names):
        file = tmp_path / f"head{number}.py"
        code = (
            f"def head_{name}(settings, support):\n    return nearest_centroid(support.mean(2))\n"
        )
        file.write_text(text + code)
        heads.append(f"py:{file}:head_{name}")
    control = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "32")
    task = ("-t", "toy_scan:5w1s", "--episodes", "2", "-o", tmp_path / "r")
    is_twice = len({*names}) == 1
    shown = cli("episodic", *control, *task, "--heads", ",".join(heads), code=2 * is_twice)
    if is_twice:
        assert "two heads are called head_a" in shown.err
    else:
        assert all(f"toy_scan:5w1s/head_{name}" in shown.out for name in names)
