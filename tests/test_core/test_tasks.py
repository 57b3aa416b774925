"""Task ids: parts, defaults, groups, folders with odd names, and every refusal."""

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import read_cases

from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.tasks import (
    PROBES,
    PROTOCOLS,
    ColumnId,
    Options,
    TaskId,
    TaskPattern,
    resolve,
    strip_digest,
    user_data_name,
)
from fsbench.data.image_folder import load_folder_target

GROUPS = {"cdfsl": ("chestx", "isic"), "toy": ("toy_tiles",), "transfer": ("eurosat", "toy_tiles")}
KNOWN = ("chestx", "isic", "eurosat", "toy_tiles")


def find_datasets(name: str) -> tuple[str, ...]:
    if name.lower() not in (*GROUPS, *KNOWN) and not name.startswith("folder:"):
        raise UnknownName("data set", name, KNOWN)
    return GROUPS.get(name, (name if ":" in name else name.lower(),))


def ids(text: str, **options: Any) -> list[str]:
    return [str(task.in_results) for task in resolve(text, find_datasets, Options(**options))]


CASES = read_cases("tasks")


@pytest.mark.parametrize(("text", "options", "expected"), CASES["resolved"])
def test_an_id_and_options_name_tasks(
    text: str, options: dict[str, Any], expected: list[str]
) -> None:
    assert ids(text, **options) == expected


@pytest.mark.parametrize(("folder", "rest", "fields"), CASES["folders"])
def test_folders_may_hold_every_separator(folder: str, rest: str, fields: dict[str, Any]) -> None:
    assert TaskPattern.parse(folder + rest) == TaskPattern(folder + rest, folder, fields)


def test_a_folder_goes_by_the_name_that_its_data_set_has(tmp_path: Path) -> None:
    folder = tmp_path / "my birds@home"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "x.png").write_bytes(b"")
    (task,) = resolve(f"folder:{folder}:2w1s", find_datasets, Options(kinds=("episodic",)))
    assert str(task) == f"folder:{folder}:2w1s/linear@ibm"
    name = user_data_name(task.dataset)
    assert re.fullmatch(r"folder-my-birds@home\+[0-9a-f]{8}", name)
    assert str(task.in_results) == f"{name}:2w1s/linear@ibm"
    dataset = load_folder_target(task.dataset)
    assert (dataset.name, dataset.result_name) == ("folder-my-birds@home", name)


@pytest.mark.parametrize(
    ("refs", "stream"),
    [
        (("folder:/a/birds", "folder:/b/birds", "folder:/a/birds?bits=12"), "folder-birds"),
        (("hf-hub:org/set", "hf-hub:org/set?split=test", "hf-hub:org/set@1f"), "hub-org-set"),
        (("eurosat",), "eurosat"),
        (("folder-birds",), "folder-birds"),
    ],
)
def test_user_data_of_one_name_has_several_names_and_one_stream(
    refs: tuple[str, ...], stream: str
) -> None:
    names = {user_data_name(ref) for ref in refs}
    assert len(names) == len(refs)
    assert {strip_digest(name) for name in names} == {stream}
    assert user_data_name("folder:/a/../a/birds") == user_data_name("folder:/a/birds")


@pytest.mark.parametrize(("text", "options", "message"), CASES["refused"])
def test_a_pattern_that_names_no_task_is_refused(
    text: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=f"(?s){message}") as error:
        ids(text, **options)
    assert error.value.exit_code == 2


DATASETS = st.one_of(
    st.from_regex(r"[\w.+@= &-]{1,20}", fullmatch=True),
    st.text("ab:/@ .5w1s", min_size=1, max_size=20).map("folder:{}".format),
)
TASKS = st.one_of(
    st.builds(TaskId, DATASETS, probe=st.sampled_from(PROBES)),
    st.builds(
        TaskId,
        DATASETS,
        st.integers(2, 1000),
        st.integers(1, 1000),
        st.sampled_from(["linear", "affine", "soft_kmeans", "another-head"]),
        st.sampled_from(PROTOCOLS),
    ),
)
WORDS = st.lists(st.from_regex(r"[a-z#=.0-9-]{1,12}", fullmatch=True), max_size=3).map(tuple)


@given(TASKS, st.integers(1, 9999), WORDS)
def test_tasks_and_columns_are_read_as_printed(
    task: TaskId, size: int, words: tuple[str, ...]
) -> None:
    column = ColumnId(task, size, words)
    assert TaskId.parse(str(task)) == task
    assert ColumnId.parse(str(column)) == column


@pytest.mark.parametrize(
    "text", ["eurosat", "eurosat:5w1s", "x:5w1s/linear", "x:05w1s/linear@ibm", "x:tree"]
)
def test_an_incomplete_or_other_spelling_is_no_identity(text: str) -> None:
    with pytest.raises(UsageError, match="malformed task"):
        TaskId.parse(text)
    with pytest.raises(UsageError):
        ColumnId.parse(f"{text} 64px")


def test_columns_are_ordered_by_data_set_then_shots() -> None:
    texts = ["a:probe", *(f"a:5w{rest}@ibm" for rest in ("5s/linear", "20s/affine", "20s/linear"))]
    columns = [ColumnId.parse(f"{text} 64px") for text in (*texts, "b:5w1s/linear@ibm")]
    assert all(sorted(some) == columns for some in permutations(columns))


def test_parts_of_a_column() -> None:
    column = ColumnId.parse("isic:5w1s/soft_kmeans@startup 64px transductive normalize=l2")
    assert column.task == TaskId("isic", 5, 1, "soft_kmeans", "startup")
    assert (column.input_size, column.transductive) == (64, True)
    assert column.adaptation == "soft_kmeans normalize=l2"
    probe = ColumnId.parse("dogs:probe 224px lr-held-out")
    assert (probe.adaptation, probe.transductive) == ("probe lr-held-out", False)
