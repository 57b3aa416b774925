"""Other heads on the same episodes through the command line: settings, marks, errors."""

import json
from pathlib import Path

import pytest
from support.cli import call
from support.reading import read

NET = ("-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native")


def test_all_heads_meet_the_same_episodes_in_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = "linear,centroid,ridge,soft_kmeans"
    task = ("-t", "toy_scan:5w5s", "--heads", heads, "--episodes", "3")
    out = tmp_path / "results"
    assert call("episodic", *NET, *task, "-o", str(out)) == 0
    shown = capsys.readouterr()
    assert "toy_scan:5w5s/soft_kmeans@ibm 32px transductive" in shown.out
    assert "toy_scan:5w5s/ridge@ibm " in shown.out
    assert "normalize=" not in shown.out
    assert "transductive: sees all queries" in shown.err
    results = read(out)
    assert len(results) == 4
    assert len({result.manifest_hash for result in results}) == 1


def test_a_setting_is_a_field_of_the_spec_and_a_cell_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = ("-t", "toy_scan:5w1s/ridge", "--episodes", "2", "-o", str(tmp_path), "--json")
    for options in ((), ("--set", "ridge.lam=1"), ("--set", "ridge.lam=10")):
        assert call("episodic", *NET, *cell, *options) == 0
        (record,) = json.loads(capsys.readouterr().out)
        lam = 10.0 if options[1:] == ("ridge.lam=10",) else 1.0
        assert record["spec"]["fitted"] == {"normalize": "l2", "transductive": False, "lam": lam}
        assert "head" not in record["spec"]
    columns = [str(result.column) for result in read(tmp_path)]
    assert len(columns) == 2
    assert sum("lam=10.0" in column for column in columns) == 1


def test_ls_heads_tells_the_transductive_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("ls", "heads", "--json") == 0
    rows = {row["head"]: row for row in json.loads(capsys.readouterr().out)}
    assert [name for name, row in rows.items() if row["transductive"]] == ["soft_kmeans"]
    assert rows["ridge"]["settings"] == {"lam": 1.0, "normalize": "l2"}
    assert rows["ridge"]["does"].startswith("least squares")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--heads", "rigde"), "did you mean 'ridge'"),
        (("--heads", "ridge", "--set", "ridge.lam"), "HEAD.SETTING=VALUE"),
        (("--heads", "ridge", "--set", "lam=1"), "HEAD.SETTING=VALUE"),
        (("--heads", "ridge", "--set", "ridge.lamb=1"), "did you mean 'lam'"),
        (("--heads", "ridge", "--set", "ridge.lam=-1"), "greater than 0"),
        (("--heads", "ridge", "--set", "ridge.transductive=true"), "transductive is false"),
        (("--heads", "ridge", "--set", "ridge.lam=1", "--set", "ridge.lam=2"), "set twice"),
        (("--heads", "ridge", "--set", "knn.k=1"), "add --heads knn"),
        (("--heads", "linear", "--set", "linear.lr=1"), "trained as published"),
        (("--heads", "ridge", "--set", "rigde.lam=1"), "did you mean 'ridge'"),
        (("--heads", "ridge", "--bn-mode", "train"), "--heads affine"),
    ],
)
def test_wrong_settings_are_refused_before_any_work(
    arguments: tuple[str, ...], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call("episodic", *NET, "-t", "toy_scan", *arguments, "-o", str(tmp_path / "r")) == 2
    shown = capfd.readouterr().err
    assert said in shown
    assert "fix:" in shown
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("names", [("a", "b"), ("a", "a"), ("b", "a")])
def test_heads_of_ones_own_are_told_apart_by_name(
    names: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
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
    code = call("episodic", *control, *task, "--heads", ",".join(heads))
    shown = capfd.readouterr()
    if len({*names}) == 1:
        assert code == 2
        assert "two heads are called head_a" in shown.err
    else:
        assert code == 0
        assert all(f"toy_scan:5w1s/head_{name}" in shown.out for name in names)
