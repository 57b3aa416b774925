"""Task ids: parts, defaults, groups, folders with odd names, and every refusal."""

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.tasks import (
    DEFAULT_SHOTS,
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

GROUPS = {
    "cdfsl": ("chestx", "isic"),
    "toy": ("toy_tiles",),
    "transfer": ("eurosat", "toy_tiles"),
}
KNOWN = ("chestx", "isic", "eurosat", "toy_tiles")
EPISODIC = Options(kinds=("episodic",))


def find_datasets(name: str) -> tuple[str, ...]:
    if name.lower() not in (*GROUPS, *KNOWN) and not name.startswith("folder:"):
        raise UnknownName("data set", name, KNOWN)
    return GROUPS.get(name, (name if ":" in name else name.lower(),))


def ids(text: str, options: Options) -> list[str]:
    return [str(task.in_results) for task in resolve(text, find_datasets, options)]


ALL, ONE = Options(), Options(shots=(1,))
STATED = Options(kinds=("episodic",), shots=(1, 2), way=3, heads=("linear",), protocol="startup")
LINEAR = {"head": "linear", "protocol": "ibm"}
RESOLVED: list[tuple[str, Options, list[str]]] = [
    ("eurosat", EPISODIC, [f"eurosat:5w{k}s/linear@ibm" for k in DEFAULT_SHOTS]),
    ("eurosat", ONE, ["eurosat:probe", "eurosat:5w1s/linear@ibm"]),
    ("cdfsl:5w1s", ALL, ["chestx:5w1s/linear@ibm", "isic:5w1s/linear@ibm"]),
    ("ISIC:3w2s@startup", ALL, ["isic:3w2s/linear@startup"]),
    ("isic/linear", ONE, ["isic:5w1s/linear@ibm"]),
    ("isic@startup", ONE, ["isic:5w1s/linear@startup"]),
    ("isic:probe", ONE, ["isic:probe"]),
    ("isic", STATED, [f"isic:3w{k}s/linear@startup" for k in (1, 2)]),
    ("transfer", ALL, ["eurosat:probe", "toy_tiles:probe"]),
    ("transfer:knn", ALL, ["eurosat:knn", "toy_tiles:knn"]),
    ("transfer:5w1s", EPISODIC, ["eurosat:5w1s/linear@ibm", "toy_tiles:5w1s/linear@ibm"]),
    ("transfer/linear", ONE, ["eurosat:5w1s/linear@ibm", "toy_tiles:5w1s/linear@ibm"]),
    ("folder:/a/b:knn", Options(kinds=("probe",)), [f"{user_data_name('folder:/a/b')}:knn"]),
]
"""What an id and options name; parts that neither states have defaults."""


@pytest.mark.parametrize(("text", "options", "expected"), RESOLVED)
def test_an_id_and_options_name_tasks(text: str, options: Options, expected: list[str]) -> None:
    assert ids(text, options) == expected


@pytest.mark.parametrize(
    ("folder", "rest", "fields"),
    [
        ("folder:/a/linear", "", {}),
        ("folder:/a/b@ibm", "", {}),
        ("folder:/a", ":5w1s", {"n_way": 5, "n_shot": 1}),
        ("folder:/a:b/c@d", ":5w1s/linear@ibm", {"n_way": 5, "n_shot": 1, **LINEAR}),
        ("folder:/a", ":5w1s@ibm", {"n_way": 5, "n_shot": 1, "protocol": "ibm"}),
        ("folder:/a", ":probe", {"probe": "probe"}),
        ("folder:a b/5w1s", "", {}),
        ("hf-hub:a/b", "", {}),
        ("hf-hub:a/b@ibm", "", {}),
        ("hf-hub:a/b", ":knn", {"probe": "knn"}),
        ("hf-hub:a/b@1f?split=a&label=y", ":2w5s/linear@ibm", {"n_way": 2, "n_shot": 5, **LINEAR}),
    ],
)
def test_folders_may_hold_every_separator(folder: str, rest: str, fields: dict[str, Any]) -> None:
    assert TaskPattern.parse(folder + rest) == TaskPattern(folder + rest, folder, fields)


def test_a_folder_goes_by_the_name_that_its_data_set_has(tmp_path: Path) -> None:
    folder = tmp_path / "my birds@home"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "x.png").write_bytes(b"")
    (task,) = resolve(f"folder:{folder}:2w1s", find_datasets, EPISODIC)
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


SAME, OTHER_KIND = "say the same part", "this command runs no"
NO_HEAD = "a probe has no adaptation and no protocol"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("isic:5w1s", Options(shots=(1,)), f"--shots {SAME}.*drop --shots"),
        ("isic:5w1s", Options(way=5), f"--way {SAME}"),
        ("isic/linear", Options(heads=("linear",)), f"--heads {SAME}"),
        ("isic@ibm", Options(protocol="ibm"), f"--protocol {SAME}"),
        ("folder:/a:5w1s", Options(shots=(1,)), f"--shots {SAME}"),
        ("isik", ALL, "unknown data set 'isik'.*did you mean 'isic'"),
        ("isic/liner", ALL, "did you mean 'linear'"),
        ("isic@startpu", ALL, "did you mean 'startup'"),
        *((f"isic:{shape}", ALL, "ways") for shape in ("1w1s", "5w0s", "5w1001s", "999999w1s")),
        ("isic:probe", EPISODIC, f"{OTHER_KIND} probe tasks"),
        ("transfer", EPISODIC, f"'transfer': {OTHER_KIND} probe tasks"),
        ("isic:5w1s", Options(kinds=("probe",)), f"{OTHER_KIND} episodic tasks"),
        ("isic:probe/linear", ALL, NO_HEAD),
        ("isic:knn/linear", ALL, NO_HEAD),
        *(
            (text, ALL, "malformed task.*DATASET:5w1s/linear@ibm")
            for text in ("", ":5w1s", "isic:5w", "isic:5x1s", "isic:", "isic:5w1s:5w1s", "isic@")
        ),
        ("folder:", ALL, "malformed task"),
    ],
)
def test_a_pattern_that_names_no_task_is_refused(text: str, options: Options, message: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){message}") as error:
        ids(text, options)
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
