"""Options of an evaluation: one model, read alike from Python, commands, --config and sweeps."""

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import typer
from support.cases import read_cases
from typer.testing import CliRunner

import fsbench
from fsbench.api.options import EvaluationOptions, TaskOptions
from fsbench.api.request import build_request
from fsbench.cli.main import build, run
from fsbench.cli.options import PANELS
from fsbench.core import specs
from fsbench.core.errors import FsbenchError, UnknownName, UsageError
from fsbench.core.options import expand_path, expand_reference
from fsbench.core.tasks import TaskId
from fsbench.sweep.file import read_sweep_file

MODEL = "fsbench/toy_resnet"


def of_python(values: dict[str, Any]) -> EvaluationOptions:
    return EvaluationOptions.read({"model": MODEL, **values})


def of_command(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> EvaluationOptions:
    """Return what `fsbench benchmark` passes to `fsbench.evaluate`."""
    calls: list[dict[str, Any]] = []

    def record(**values: Any) -> None:
        calls.append(values)
        raise UsageError("recorded")

    monkeypatch.setattr(fsbench, "evaluate", record, raising=False)
    result = CliRunner().invoke(build(), ["benchmark", "-m", MODEL, *arguments])
    if not calls:
        raise result.exception or AssertionError(result.output)
    return EvaluationOptions.read(calls[0])


def of_flags(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> EvaluationOptions:
    arguments: list[str] = []
    for name, value in values.items():
        flag = f"--{name.replace('_', '-')}"
        texts = value if isinstance(value, list) else [value]
        arguments += [flag] if value is True else [a for text in texts for a in (flag, str(text))]
    return of_command(arguments, monkeypatch)


def of_config(values: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> EvaluationOptions:
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    return of_command(["-C", str(path)], monkeypatch)


def of_sweep(values: dict[str, Any], folder: Path) -> TaskOptions:
    path = folder / "sweep.json"
    block = {"tasks": ["toy"]} | values if "task" not in values else values
    path.write_text(json.dumps({"backbones": [{"model": "a"}], "evaluate": [block]}))
    return read_sweep_file(path).evaluate[0]


GIVEN = read_cases("options")
"""A value of every option, also by its other names."""


def test_every_option_has_a_value_here() -> None:
    python_only = {"kinds", "progress", "model"}
    assert {EvaluationOptions.names()[name] for name in GIVEN} | python_only == set(
        EvaluationOptions.declared()
    )


@pytest.mark.parametrize("name", GIVEN)
def test_all_entrances_read_an_option_alike(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {name: GIVEN[name]}
    expected = of_python({"output": "results", **values})
    assert of_flags(values, monkeypatch) == expected
    assert of_config(values, tmp_path, monkeypatch) == expected
    option = EvaluationOptions.names()[name]
    assert getattr(expected, option) != EvaluationOptions(MODEL, output=Path("results"))
    if option in TaskOptions.declared():
        block = of_sweep(values, tmp_path)
        assert getattr(block, option) == getattr(expected, option)


def test_underscores_are_dashes_and_the_command_line_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for flag in ("--batch-size", "--batch_size", "-b"):
        assert of_command([flag, "8"], monkeypatch).batch_size == 8
    tasks = ["-t", "a,b", "-t", "folder:x,y"]
    assert of_command(tasks, monkeypatch).task_names == ["a", "b", "folder:x,y"]
    config = tmp_path / "run.yaml"
    config.write_text("tasks: eurosat,isic\nbatch_size: 4\n")
    for words, size in ((), 4), (("-b", "16"), 16):
        options = of_command(["--config", str(config), *words], monkeypatch)
        assert (options.task_names, options.batch_size) == (["eurosat", "isic"], size)


REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("interpolation", "bilinar", "unknown interpolation 'bilinar'\n  fix: did you mean 'bilinear'"),
    ("bn_mode", "evall", "unknown bn mode 'evall'\n  fix: did you mean 'eval'"),
    ("input_size", "7", "input size '7'\n  fix: write pixels in 8..1024, auto or native"),
    ("input_size", "big", "input size 'big'\n  fix: write pixels in 8..1024, auto or native"),
    ("crop", 0.2, "crop '0.2'\n  fix: Input should be greater than or equal to 0.5"),
    ("episodes", 0, "episodes '0'\n  fix: Input should be greater than or equal to 1"),
    ("episodes", 2.7, "episodes '2.7'\n  fix: Input should be a valid integer"),
    ("n_query", 1001, "n query '1001'\n  fix: Input should be less than or equal to 1000"),
    ("seed", -1, "seed '-1'\n  fix: Input should be greater than or equal to 0"),
    ("limit", 0, "limit '0'\n  fix: Input should be greater than or equal to 1"),
    ("shots", "1,x", "shots 'x'\n  fix: Input should be a valid integer"),
    ("shards", "0/2", "'shards'\n  fix: did you mean 'shard'"),
    ("shots", [0], "shots '0'\n  fix: Input should be greater than or equal to 1"),
)


@pytest.mark.parametrize(("name", "value", "message"), REFUSED)
def test_all_entrances_refuse_a_value_in_the_same_words(
    name: str, value: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {name: value}
    entrances: list[Callable[[], object]] = [
        lambda: fsbench.evaluate(MODEL, "toy_tiles", **values),
        lambda: of_config(values, tmp_path, monkeypatch),
    ]
    if name in TaskOptions.declared():
        entrances.append(lambda: of_sweep(values, tmp_path))
    if name in EvaluationOptions.declared():
        entrances.append(lambda: of_flags(values, monkeypatch))
    for read in entrances:
        with pytest.raises(UsageError, match=re.escape(message)) as error:
            read()
        is_of_file = str(tmp_path) in str(error.value)
        assert is_of_file or isinstance(error.value, UnknownName) == ("unknown" in str(error.value))


KINDS = ([5], 5, "5", (5,), np.array([5]), np.int64(5), 5.0, "5,")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *(("shots", kind, (5,)) for kind in KINDS),
        *(("episodes", 5.0, 5), ("seed", np.int64(3), 3), ("input_size", "84", 84)),
        ("crop", "0.875", 0.875),
        ("model", "timm/a,timm/b", ("timm/a", "timm/b")),
        ("model", "ck/lr=0.1,seed=2/m.pth@resnet18", ("ck/lr=0.1,seed=2/m.pth@resnet18",)),
        ("model", "run:a,b c/d,timm/e, run:f", ("run:a,b c/d", "timm/e", "run:f")),
        ("tasks", "folder:a,b/c=1:5w1s,eurosat:probe", ("folder:a,b/c=1:5w1s", "eurosat:probe")),
        ("tasks", "eurosat,isicc", ("eurosat", "isicc")),
        ("tasks", "folder:a,cdfsl,hf-hub:o/n", ("folder:a", "cdfsl", "hf-hub:o/n")),
        ("heads", "ridge,py:a,b/c.py:f,linear", ("ridge", "py:a,b/c.py:f", "linear")),
        ("data", "/x,y/z,eurosat=/q,r", ("/x,y/z", "eurosat=/q,r")),
        ("set", "a.b=1,2", ("a.b=1,2",)),
        ("tasks", TaskId("isic", probe="probe"), (TaskId("isic", probe="probe"),)),
    ],
)
def test_values_of_any_kind_and_lists_are_read(name: str, value: Any, expected: Any) -> None:
    """A comma within a path separates nothing."""
    assert getattr(of_python({name: value}), name) == expected


def test_paths_are_expanded_by_one_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("PLACE", "/there")
    assert expand_path("~/a") == expand_path("$HOME/a") == Path("/home/me/a")
    texts = ("run:~/a", "folder:$PLACE/a:5w1s", "eurosat=~/b", "a~b", "x.pth@resnet18")
    assert [*map(expand_reference, texts)] == [
        *("run:/home/me/a", "folder:/there/a:5w1s", "eurosat=/home/me/b", "a~b", "x.pth@resnet18")
    ]
    values = {"model": "~/m.pth", "output": "~/o", "cache": Path("~/c"), "spec": "${PLACE}/s:t"}
    options = EvaluationOptions.read(values)
    assert (options.model, options.output) == (("/home/me/m.pth",), Path("/home/me/o"))
    assert (options.cache, options.spec) == (Path("/home/me/c"), (Path("/there/s:t"),))


READERS: tuple[Callable[[str], object], ...] = (
    *(fsbench.load_results, fsbench.leaderboard),
    lambda path: fsbench.evaluate(MODEL, "eurosat:5w1s", random_init=0, data=path),
    lambda path: fsbench.Episodes("eurosat:5w1s", data=path),
    lambda path: fsbench.compare(path, path, board=path),
)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("path", ["~/none", "$HOME/none"])
def test_functions_of_python_expand_the_same_paths(
    read: Callable[[str], object], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(FsbenchError, match=re.escape(str(tmp_path / "none"))):
        read(path)


def test_a_flag_means_one_thing_in_all_commands() -> None:
    commands: Any = typer.main.get_command(build()).commands  # type: ignore[attr-defined]
    for name, flag, meaning in (
        *(("sweep", "-j", "jobs"), ("claims", "-j", "jobs")),
        *(("sweep", "--threads", "threads"), ("episodic", "--limit", "limit")),
    ):
        assert [p.name for p in commands[name].params if flag in p.opts] == [meaning]


def test_an_output_that_is_a_file_is_refused_before_work(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("{}")
    with pytest.raises(UsageError, match="is a file"):
        fsbench.evaluate(MODEL, "toy_scan:5w1s", random_init=0, output=path)
    assert path.read_text() == "{}"


def test_a_complete_task_is_taken_as_it_is() -> None:
    tasks = [TaskId.parse("eurosat:5w1s/linear@ibm"), "isic"]
    options = TaskOptions.read({"tasks": tasks, "kinds": "episodic", "shots": 5})
    names = [*map(str, build_request(options).tasks)]
    assert names == ["eurosat:5w1s/linear@ibm", "isic:5w5s/linear@ibm"]


def test_words_are_those_of_the_specs() -> None:
    kinds = TaskOptions.types()
    assert get_args(kinds["interpolation"]) == get_args(specs.Interpolation)
    assert get_args(kinds["bn_mode"]) == get_args(specs.BnMode)


def test_help_has_an_example_and_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["episodic", "--help"])
    shown = capsys.readouterr().out
    assert "…" not in shown
    panels = [shown.index(f"─ {panel} ─") for panel in PANELS[1:]]
    assert panels == sorted(panels)
    assert "Example: fsbench episodic" in shown


def test_python_has_the_options_as_its_signature_and_in_its_docstring() -> None:
    assert set(inspect.signature(fsbench.evaluate).parameters) == set(EvaluationOptions.declared())
    for name in EvaluationOptions.declared():
        assert f"\n    {name}\n" in (fsbench.evaluate.__doc__ or "")
