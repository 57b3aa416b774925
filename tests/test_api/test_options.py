"""Options of an evaluation: one model, checked alike wherever the values come from."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import fsbench
from fsbench.api.options import EvaluationOptions
from fsbench.cli.main import run
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.tasks import TaskId
from fsbench.sweep.file import read_sweep_file


def test_texts_of_the_command_line_are_read_as_values() -> None:
    sizes = [EvaluationOptions.read(input_size=t).input_size for t in ("auto", "native", "84", 84)]
    assert sizes == ["auto", "native", 84, 84]
    options = EvaluationOptions.read(tasks=["eurosat:3w2s"], crop="0.875", set=["ridge.lam=2"])
    assert (options.image.resize_factor, options.image.input_size) == (1 / 0.875, 224)
    with pytest.raises(UsageError, match="settings of ridge, which no task uses"):
        options.request()


def test_a_complete_task_is_taken_as_it_is() -> None:
    task = TaskId.parse("eurosat:5w1s/linear@ibm")
    options = EvaluationOptions.read(tasks=[task, "isic"], kinds=["episodic"], shots=[5])
    assert [str(task) for task in options.request().tasks] == [
        "eurosat:5w1s/linear@ibm",
        "isic:5w5s/linear@ibm",
    ]


def test_an_option_of_specs_is_told_from_the_choice_of_tasks() -> None:
    assert not EvaluationOptions.read(tasks=["eurosat"], kinds=["probe"]).names_specs
    for values in ({"seed": 1}, {"n_query": 5}, {"crop": 0.9}, {"shots": [1]}, {"limit": 3}):
        assert EvaluationOptions.read(tasks=["eurosat"], **values).names_specs


REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("interpolation", "bilinar", "unknown interpolation 'bilinar'\n  fix: did you mean 'bilinear'"),
    ("bn_mode", "evall", "unknown bn mode 'evall'\n  fix: did you mean 'eval'"),
    ("input_size", "7", "input size '7'\n  fix: write pixels in 8..1024, auto or native"),
    ("input_size", "big", "input size 'big'\n  fix: write pixels in 8..1024, auto or native"),
    ("crop", 0.2, "crop '0.2'\n  fix: write a fraction in 0.5..1, e.g. 0.875"),
    ("episodes", 0, "episodes '0'\n  fix: Input should be greater than or equal to 1"),
    ("n_query", 1001, "n query '1001'\n  fix: Input should be less than or equal to 1000"),
    ("seed", -1, "seed '-1'\n  fix: Input should be greater than or equal to 0"),
    ("limit", 0, "limit '0'\n  fix: Input should be greater than or equal to 1"),
)


@pytest.mark.parametrize(("name", "value", "message"), REFUSED)
def test_a_value_that_does_not_fit_is_answered_by_what_does(
    name: str, value: Any, message: str
) -> None:
    with pytest.raises(UsageError) as error:
        fsbench.evaluate("fsbench/toy_resnet", "toy_tiles", **{name: value})
    assert message in str(error.value)
    assert isinstance(error.value, UnknownName) == message.startswith("unknown")


@pytest.mark.parametrize(("name", "value", "message"), REFUSED)
def test_files_are_checked_as_python_is(
    name: str, value: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = {"backbones": [{"model": "a"}], "evaluate": [{"tasks": ["toy"], name: value}]}
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(sweep))
    with pytest.raises(UsageError, match=f"evaluate.0.{name}"):
        read_sweep_file(path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({name: value}))
    with pytest.raises(SystemExit) as ended:
        run(["episodic", "-m", "fsbench/toy_resnet", "-t", "toy_tiles", "-C", str(config)])
    assert ended.value.code == 2
    assert re.search(name.replace("_", "[ _]"), capsys.readouterr().err)
