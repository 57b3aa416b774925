"""--spec: a result file or a spec alone is evaluated exactly as it states."""

import json
from pathlib import Path

import pytest
from support.fakes import digests

import fsbench
from fsbench.core.errors import UsageError, ValidationFailed

MODEL = "fsbench/toy_resnet"
OPTIONS = {"random_init": 0, "progress": False}


@pytest.mark.parametrize("task", ["toy_tiles:5w1s/ridge", "toy_tiles:probe"])
def test_the_spec_of_a_result_gives_the_same_result(tmp_path: Path, task: str) -> None:
    settings = ["ridge.lam=3"] if "ridge" in task else ["probe.schedule=constant"]
    first = fsbench.evaluate(
        MODEL, task, input_size=32, limit=7, seed=3, set=settings, **OPTIONS
    ).save(tmp_path)
    again = fsbench.evaluate(MODEL, spec=first.paths[0], **OPTIONS)
    assert again[0].spec == first[0].spec
    assert again[0].spec_digest == first[0].spec_digest
    assert digests(*again.paths) == digests(*first.paths)
    assert (again[0].flags, again[0].score) == (first[0].flags, first[0].score)


def test_a_spec_alone_needs_a_data_set(tmp_path: Path) -> None:
    whole = fsbench.evaluate(MODEL, "toy_tiles:5w1s", input_size=32, episodes=5, **OPTIONS)
    path, names = tmp_path / "spec.json", ["toy_tiles", "toy_scan"]
    content = {**whole[0].spec.model_dump(mode="json"), "n_episodes": 5}
    path.write_text(json.dumps(content), encoding="utf8")
    with pytest.raises(UsageError, match="names no data set"):
        fsbench.evaluate(MODEL, spec=path, **OPTIONS)
    results = fsbench.evaluate(MODEL, names, spec=path, **OPTIONS)
    assert [str(result.task) for result in results] == [f"{n}:5w1s/linear@ibm" for n in names]
    assert digests(*whole.paths).items() < digests(*results.paths).items()


def test_options_beside_a_spec_and_other_files_are_refused(tmp_path: Path) -> None:
    path, command = tmp_path / "spec.json", {"spec": tmp_path / "spec.json", **OPTIONS}
    path.write_text('{"kind": "episodic", "n_way": 5}', encoding="utf8")
    with pytest.raises(UsageError, match="beside --spec"):
        fsbench.evaluate(MODEL, "toy_tiles", seed=1, **command)
    with pytest.raises(ValidationFailed, match="n_way"):
        fsbench.evaluate(MODEL, "toy_tiles", **command)
    path.write_text("[1, 2", encoding="utf8")
    with pytest.raises(ValidationFailed, match=str(path)):
        fsbench.evaluate(MODEL, "toy_tiles", **command)
