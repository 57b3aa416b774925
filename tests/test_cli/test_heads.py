"""Other heads on the same episodes through the command line: settings, marks, errors."""

from pathlib import Path

import pytest
from support.cli import CommandLine
from support.reading import read

NET = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")


def test_all_heads_meet_the_same_episodes_in_one_command(tmp_path: Path, cli: CommandLine) -> None:
    heads = "linear,centroid,ridge,soft_kmeans"
    task = ("-t", "toy_scan:5w5s", "--heads", heads, "--episodes", "3", "-o", tmp_path)
    shown = cli("episodic", *NET, *task)
    assert "toy_scan:5w5s/soft_kmeans@ibm 32px transductive" in shown.out
    assert "toy_scan:5w5s/ridge@ibm " in shown.out
    assert "normalize=" not in shown.out
    assert "transductive: sees all queries" in shown.err
    results = read(tmp_path)
    assert (len(results), len({result.manifest_hash for result in results})) == (4, 1)


def test_a_setting_is_a_field_of_the_spec_and_a_column_of_its_own(
    tmp_path: Path, cli: CommandLine
) -> None:
    task = ("-t", "toy_scan:5w1s/ridge", "--episodes", "2", "-o", tmp_path)
    for options, lam in (((), 1.0), (("ridge.lam=1",), 1.0), (("ridge.lam=10",), 10.0)):
        (record,) = cli.json("episodic", *NET, *task, *(f"--set={text}" for text in options))
        assert record["spec"]["fitted"] == {"normalize": "l2", "transductive": False, "lam": lam}
        assert "head" not in record["spec"]
    columns = [str(result.column) for result in read(tmp_path)]
    assert ["lam=10.0" in column for column in sorted(columns)] == [False, True]


def test_ls_heads_tells_the_transductive_ones(cli: CommandLine) -> None:
    rows = {row["head"]: row for row in cli.json("ls", "heads")}
    assert [name for name, row in rows.items() if row["transductive"]] == ["soft_kmeans"]
    assert rows["ridge"]["settings"] == {"lam": 1.0, "normalize": "l2"}
    assert rows["ridge"]["does"].startswith("least squares")


@pytest.mark.parametrize("names", ["ab", "aa"])
def test_heads_of_ones_own_are_told_apart_by_name(
    names: str, tmp_path: Path, cli: CommandLine
) -> None:
    heads = []
    for number, name in enumerate(names):
        file = tmp_path / f"head{number}.py"
        file.write_text(
            "from protocols.episodic.centroid import nearest_centroid\n"
            f"def head_{name}(settings, support): return nearest_centroid(support.mean(2))\n"
        )
        heads.append(f"py:{file}:head_{name}")
    task = ("-t", "toy_scan:5w1s", "--episodes", "2", "-o", tmp_path / "r")
    is_twice = names == "aa"
    shown = cli("episodic", *NET, *task, "--heads", ",".join(heads), code=2 * is_twice)
    parts = ["two heads are called head_a"] if is_twice else [f"5w1s/head_{n}" for n in names]
    assert all(part in shown.out + shown.err for part in parts)
