"""The jobs of a sweep by hand counts."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest
from safetensors.torch import save_file
from support.reporters import Recorder
from support.sweep import ENTRY, make_options, read, sweep

from fsbench.api.request import EvaluationRequest
from fsbench.backbones.features import FeatureStore
from fsbench.backbones.networks import load_architecture
from fsbench.core import process
from fsbench.core.errors import UsageError
from fsbench.core.progress import WorkEstimate
from fsbench.results.verification import read_loaded
from fsbench.sweep import costs, evaluation
from fsbench.sweep.analysis import AnalysisJob
from fsbench.sweep.backbones import GivenBackbone, TrainingJob
from fsbench.sweep.evaluation import EvaluationJob, FeaturesJob
from fsbench.sweep.graph import SweepPlan, find_done, plan_jobs
from fsbench.sweep.schedule import plan_sweep
from fsbench.sweep.submission import SubmissionJob
from pretrain.recipes.recipe import Recipe

RANDOM = {"model": "fsbench/toy_resnet", "random_init": 0, "name": "random"}
TASKS = {"protonet.way": 2, "protonet.shots": 1, "protonet.queries": 1, "batch_size": 4}


def graph(root: Path, **more: Any) -> SweepPlan:
    return plan_jobs(read(sweep(root, **more)), make_options(root))


def kinds(jobs: SweepPlan) -> Counter[str]:
    return Counter(job.KIND for job in jobs.jobs.values())


def test_hand_count(tmp_path: Path) -> None:
    """Two seeds x (seal, llf, swr; normal, and normal with one schedule over all rounds)."""
    jobs = graph(
        tmp_path,
        methods=("seal", "llf", "swr"),
        runs={"controls": True, "seeds": [0, 1]},
        backbones=[RANDOM],
        submit=[ENTRY],
    )
    assert kinds(jobs) == {"pretrain": 10, "features": 11, "evaluate": 11, "submit": 6}
    order = list(jobs.jobs)
    assert all(order.index(n) < order.index(key) for key in order for n in jobs.needs[key])
    trained = [job for job in jobs.jobs.values() if isinstance(job, TrainingJob)]
    assert {jobs.needs[job.key] for job in trained} == {()}
    for key, job in jobs.jobs.items():
        if isinstance(job, SubmissionJob):
            assert jobs.needs[key] == tuple(job_before.key for job_before in job.evaluations)
        if isinstance(job, FeaturesJob) and isinstance(job.backbone, TrainingJob):
            assert jobs.needs[key] == (job.backbone.key,)


def test_a_backbone_is_submitted_as_the_first_block_says_that_selects_it(tmp_path: Path) -> None:
    """One that no block selects is evaluated only."""
    blocks = [{**ENTRY, "only": ["random"], "license": "MIT"}, {**ENTRY, "only": ["*random", "x"]}]
    backbones = [{**RANDOM, "name": name} for name in ("random", "more-random", "other")]
    jobs = graph(tmp_path, methods=("llf",), backbones=backbones, submit=blocks).jobs.values()
    made = [job for job in jobs if isinstance(job, SubmissionJob)]
    licenses = {job.name: job.entries.license for job in made}
    assert licenses == {"random": "MIT", "more-random": "Apache-2.0"}


def test_jobs_by_data_set_and_adaptation_once(tmp_path: Path) -> None:
    data = sweep(tmp_path, methods=("seal",))
    target = data["evaluate"][0]["tasks"][0].rpartition(":")[0]
    linear = {"tasks": [target], "shots": [1, 2], "heads": ["linear", "ridge"], "episodes": 4}
    affine = {"tasks": [f"{target}:5w1s/affine"], "episodes": 2, "only": ["*-llf-*"]}
    twice = {**data, "pretrain": data["pretrain"] * 2, "evaluate": [linear, affine, linear]}
    jobs = plan_jobs(read(twice), make_options(tmp_path))
    assert kinds(jobs) == {"pretrain": 1, "features": 1, "evaluate": 3}
    evaluations = [job for job in jobs.jobs.values() if isinstance(job, EvaluationJob)]
    tasks = [tuple(map(str, job.tasks.images)) for job in evaluations]
    shapes = [[task.rpartition(":")[2] for task in names] for names in tasks]
    assert shapes == [
        ["probe"],
        ["5w1s/linear@ibm", "5w2s/linear@ibm"],
        ["5w1s/ridge@ibm", "5w2s/ridge@ibm"],
    ]


def test_two_backbones_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="called same"):
        graph(tmp_path, backbones=[{**RANDOM, "name": "same"}] * 2)


def test_a_meta_learner_is_left_out_of_what_needs_a_head_for_the_source(tmp_path: Path) -> None:
    heard = Recorder()
    looks = [{"what": ["knn_depth", "dormant"], "images": 8}, {"what": ["sharpness"], "images": 8}]
    data = sweep(tmp_path, methods=("normal",), analyze=looks)
    (plain,) = data["pretrain"]
    meta = {**plain, "methods": ["protonet"], "set": {**plain["set"], **TASKS}}
    jobs = plan_jobs(
        read({**data, "pretrain": [plain, meta]}), make_options(tmp_path), heard
    ).jobs.values()
    analyses = [job for job in jobs if isinstance(job, AnalysisJob)]
    normal, *_, protonet = [job.backbone.title for job in analyses]
    assert [(tuple(job.analyses), job.backbone.title) for job in analyses] == [
        (("knn_depth", "dormant"), normal),
        (("sharpness",), normal),
        (("dormant",), protonet),
    ]
    lack = f"{protonet} has no classifier of a source"
    assert heard.lines == [f"{what} is left out: {lack}" for what in ("knn_depth", "sharpness")]


@pytest.mark.parametrize(
    ("features", "missing"),
    [({}, "input size, mean, std"), ({"mean": [0.5] * 3, "std": [0.5] * 3}, "input size")],
)
def test_a_backbone_whose_preprocessing_is_unknown_is_refused_with_the_plan(
    tmp_path: Path, features: dict[str, Any], missing: str
) -> None:
    weights = tmp_path / "net.safetensors"
    save_file(load_architecture("toy_resnet").build(0).state_dict(), weights)
    backbone = {"model": f"{weights}@fsbench/toy_resnet", **features}
    with pytest.raises(UsageError, match=f"states the {missing} of its training"):
        graph(tmp_path, backbones=[backbone])


def test_a_spec_is_made_once_and_a_result_compared_with_its_own_backbone_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five tasks of six backbones, with results of all in the entry of one: five comparisons."""

    def count(owner: type, name: str) -> Any:
        method = getattr(owner, name)
        counted = create_autospec(method, side_effect=method)
        monkeypatch.setattr(owner, name, counted)
        return counted

    data = sweep(tmp_path) | {"pretrain": []}
    data["backbones"] = [{**RANDOM, "random_init": i, "name": f"random-{i}"} for i in range(6)]
    data["evaluate"][0] |= {"shots": [1, 2], "heads": ["linear", "ridge"]}
    data["evaluate"][0]["tasks"] = [data["evaluate"][0]["tasks"][0].rpartition(":")[0]]
    spec, has_facts = count(EvaluationRequest, "spec"), count(GivenBackbone, "has_facts")
    options = make_options(tmp_path, board=tmp_path / "board")
    jobs = plan_jobs(read(data), options)
    results = [
        SimpleNamespace(
            backbone=job.backbone.loaded,
            task=task.in_results,
            spec_digest=job.tasks.digests[task],
            dataset=job.tasks.images[task],
            score=SimpleNamespace(n=4),
            flags=(),
        )
        for job in jobs.jobs.values()
        if isinstance(job, EvaluationJob) and isinstance(job.backbone, GivenBackbone)
        for task in job.tasks.images
    ]
    (tmp_path / "board" / "random-0").mkdir(parents=True)
    (tmp_path / "board" / "random-0" / "entry.json").touch()
    loaded = [SimpleNamespace(result=result) for result in results]
    read_entry = Mock(return_value=SimpleNamespace(loaded=loaded))
    monkeypatch.setattr(evaluation, "read_verified", read_entry)
    done = find_done(jobs, options).done
    assert [spec.call_count, has_facts.call_count, read_entry.call_count] == [5, 5, 1]
    assert set(done.values()) == {"not needed any more", "done"}
    assert all("random-0" in key for key in done)
    for result in results:
        result.flags = ("shard",)
    assert not find_done(jobs, options).done


@pytest.mark.parametrize("device", ["auto", "cuda", "cuda:1", "cpu"])
def test_an_estimate_times_every_job_on_its_device_and_gives_back_the_memory(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job without a share is timed on the CPU."""
    empty_cache, timed = Mock(), dict[str, str]()

    def note(recipe: Recipe, outline: object, on: str) -> WorkEstimate:
        timed[recipe.name] = on
        return WorkEstimate("", 1, steps=1)

    monkeypatch.setattr(costs, "estimate_training", note)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.empty_cache", empty_cache)
    for share in (1, 0):
        file = read(sweep(tmp_path, gpus={"pretrain": share}, evaluate=[]))
        options = make_options(tmp_path, f"out{share}", device=device)
        costs.estimate_costs(plan_sweep(file, options), options)
        expected = {"auto": "cuda:0", "cuda": "cuda:0"}.get(device, device) if share else "cpu"
        assert timed == {"toy/normal": expected}
    assert empty_cache.call_count == 2


def test_images_that_read_alike_are_extracted_apart(tmp_path: Path) -> None:
    """A resize to 36 px by a factor of 1.14 and by 1 / .875."""
    block = {"tasks": ["toy_tiles"], "kinds": ["episodic"], "shots": [1], "input_size": 32}
    evaluate = [block, {**block, "crop": 0.875}]
    jobs = plan_jobs(read({"backbones": [RANDOM], "evaluate": evaluate}), make_options(tmp_path))
    assert kinds(jobs) == {"features": 2, "evaluate": 2}


def test_one_extraction_feeds_all_heads_of_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = {"tasks": ["toy_tiles"], "kinds": ["episodic"], "shots": [1], "episodes": 2}
    heads = {**block, "heads": ["linear", "ridge"], "input_size": "native"}
    evaluate = [heads, {**heads, "tasks": ["toy_scan"], "heads": ["centroid"]}]
    file, options = read({"backbones": [RANDOM], "evaluate": evaluate}), make_options(tmp_path)
    jobs = plan_jobs(file, options)
    assert kinds(jobs) == {"features": 2, "evaluate": 3}
    tiles, linear, ridge, scan, centroid = jobs.jobs.values()
    evaluations = [linear, ridge, centroid]
    assert [jobs.needs[job.key] for job in evaluations] == [(tiles.key,)] * 2 + [(scan.key,)]
    shares = ["features", "heads", "heads", "features", "heads"]
    assert [job.share for job in jobs.jobs.values()] == shares

    with monkeypatch.context() as patch:
        patch.setattr(FeatureStore, "kind", "cuda")
        patch.setattr(process, "device_model", lambda device: "a GPU")
        tiles.run(options)
    on_cpu = replace(options, features_device="cuda")
    for job in evaluations[:2]:
        job.run(on_cpu)
    states = find_done(jobs, options).done
    assert states.keys() == {tiles.key, *(job.key for job in evaluations[:2])}
    for one in read_loaded(options.results):
        made = one.result.provenance
        assert (made.device, made.features_device) == ("cpu", "a GPU")
    with pytest.raises(UsageError, match=r"no features of .* on toy_scan are cached"):
        evaluations[2].run(on_cpu)
