"""Task ids and the other words of a command: read as written, or refused with what is allowed."""

import re

import pytest
from fuzz.cases import SIZES, Tally
from hypothesis import strategies as st

from fsbench.api.options import EvaluationOptions, TaskOptions
from fsbench.api.request import build_request, parse_tasks
from fsbench.backbones.loading import parse_reference
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.tasks import PROTOCOLS, TaskId, head_names
from fsbench.data.catalog import TARGETS, DataRoots
from pretrain.recipes import registry

ODD = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["", " ", ":", "/", "@", "..", "../..", "~", "~nobody/x", "\x00", "a" * 300]),
    st.sampled_from(["9" * 5000, "-1", "\u0662", "5w", "w5s", "0w1s", "5w0s", "9999w1s", "1e3"]),
)
DATASETS = st.one_of(
    st.sampled_from([*TARGETS.names(), "cdfsl", "toy", "folder:x", "EuroSAT"]), ODD
)
SHAPES = st.one_of(
    st.tuples(st.integers(0, 1200), st.integers(0, 1200)).map(lambda s: f"{s[0]}w{s[1]}s"),
    st.sampled_from(["probe", "knn", "5w1s", "5w1s", "5w5s"]),
    ODD,
)
TASKS = st.builds(
    "{}{}{}{}".format,
    DATASETS,
    st.one_of(st.just(""), SHAPES.map(":{}".format)),
    st.one_of(st.just(""), st.one_of(st.sampled_from(head_names()), ODD).map("/{}".format)),
    st.one_of(st.just(""), st.one_of(st.sampled_from(PROTOCOLS), ODD).map("@{}".format)),
)


@SIZES
def test_task_ids_are_read_as_written(size: int, tally: Tally) -> None:
    """Of what is taken, the parts that were written stand in the id, which names the same task."""

    def check(text: str) -> None:
        outcome = tally.attempt(
            lambda: parse_tasks(TaskOptions.read({"tasks": [text]})), UsageError
        )
        for task in outcome or ():
            assert isinstance(task, TaskId)
            assert TaskId.parse(str(task)) == task
            if task.dataset.startswith("folder:"):
                continue
            written = re.search(r":(\d+)w(\d+)s", text)
            if written and task.n_shot:
                assert (task.n_way, task.n_shot) == (int(written[1]), int(written[2]))
            assert parse_tasks(TaskOptions([task])) == (task,)

    tally.explore(size, check, TASKS)


NUMBERS = st.one_of(st.integers(-(10**12), 10**12).map(str), ODD)
WORDS = {
    "shots": lambda text: TaskOptions.read({"shots": text}).shots,
    "size": lambda text: TaskOptions.read({"input_size": text}),
    "shard": lambda text: EvaluationOptions.read({"model": "x", "shard": text}),
    "data": lambda text: DataRoots.parse([text]),
    "model": parse_reference,
    "setting": lambda text: build_request(TaskOptions.read({"set": [text]})),
    "field": lambda text: registry.load_recipe("toy/seal").override([text]),
    "recipe": registry.load_recipe,
}
ASSIGNED = st.builds(
    "{}={}".format,
    st.sampled_from(
        ["ridge.lam", "probe.epoch", "lr", "plan.rounds", "seed", "methods", "width", "x"]
    ),
    st.one_of(NUMBERS, st.sampled_from(["nan", "inf", "1e999", "true", "null", "[]", "{}", "0.1"])),
)
POSITIONS = st.sampled_from(
    [".", "eurosat=.", "chestx=/nowhere", "/", "0/2", "1/2", "2/2", "native", "84"]
)


@pytest.mark.filterwarnings("ignore")
@SIZES
def test_other_words(size: int, tally: Tally) -> None:
    def check(kind: str, text: str) -> None:
        outcome = tally.attempt(lambda: (WORDS[kind](text),), FsbenchError)
        if outcome is not None and kind == "shots":
            assert [str(n) for n in outcome[0]] == [
                str(int(p)) for p in text.split(",") if p.strip()
            ]

    texts = st.one_of(NUMBERS, ASSIGNED, POSITIONS)
    tally.explore(size, check, st.sampled_from([*WORDS]), texts)
