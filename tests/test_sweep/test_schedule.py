"""What runs when, and what a failure leaves alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.jobs import Fake, Script
from support.sweep import make_options

from fsbench.core.errors import FsbenchError
from fsbench.core.io import lock_exclusively
from fsbench.sweep.file import GpuShares
from fsbench.sweep.graph import SweepPlan
from fsbench.sweep.schedule import JobQueue, run_jobs


def schedule(tmp_path: Path, script: Script, done: str = "") -> dict[str, str]:
    """Run a -> b, c; b -> d; e alone."""
    jobs, plan = {name: Fake(name=name) for name in "abcde"}, SweepPlan()
    for name, needs in {"a": "", "b": "a", "c": "a", "d": "b", "e": ""}.items():
        plan.add(jobs[name], [jobs[need] for need in needs])
    plan = replace(plan, done={jobs[name].key: "done" for name in done})
    failed = run_jobs(plan, make_options(tmp_path, jobs=2), script)
    return {plan.jobs[key].title: reason for key, reason in failed.items()}


@pytest.mark.parametrize(
    ("failures", "done", "started", "failed"),
    [
        ("", "", "aebcd", {}),
        ("", "abe", "cd", {}),
        ("b", "", "aebc", {"b": "it broke", "d": "a job that it needs failed"}),
    ],
)
def test_jobs_run_after_what_they_need_and_a_failure_stops_only_what_needs_it(
    failures: str, done: str, started: str, failed: dict[str, str], tmp_path: Path
) -> None:
    script = Script(failures)
    assert schedule(tmp_path, script, done) == failed
    assert "".join(script.started) == started
    assert script.closed


def test_jobs_take_the_emptiest_gpus_or_wait_for_them_and_others_do_not(tmp_path: Path) -> None:
    plan = SweepPlan(gpus={"2": 1, "5": 1}, shares=GpuShares(pretrain=2, heads=0.5))
    shares = {"a": "heads", "b": "heads", "c": "pretrain", "d": "analyses", "e": "heads"}
    jobs = {name: Fake(name=name, share=share) for name, share in shares.items()}
    for job in jobs.values():
        plan.add(job)
    queue, options = JobQueue(plan), make_options(tmp_path, device="auto")
    for features, heads, kind in [(1, 0, "cuda"), (0, 1, "cpu"), (0, 0, None), (1, 1, None)]:
        shared = replace(plan, shares=GpuShares(features=features, heads=heads))
        assert shared.options_of(jobs["a"], options).features_device == kind
        assert shared.options_of(jobs["d"], options).features_device is None

    def start() -> list[tuple[str, str, float, str | None]]:
        chosen = (
            (job, plan.options_of(job, options, queue.gpus_by_job[job.key]))
            for job in iter(queue.pop, None)
        )
        return [(job.title, o.device, o.gpus, o.visible) for job, o in chosen]

    at_first = [("a", "cuda", 0.5, "2"), ("b", "cuda", 0.5, "5"), ("d", "cpu", 0, "")]
    assert start() == at_first
    queue.end(jobs["a"], is_done=True)
    assert start() == [], "GPU 5 is half in use"
    queue.end(jobs["b"], is_done=True)
    assert start() == [("c", "cuda", 2, "2,5")]
    queue.end(jobs["c"], is_done=True)
    assert start() == [("e", "cuda", 0.5, "2")]


def test_one_sweep_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    refused = pytest.raises(FsbenchError, match="another process is sweeping")
    with lock_exclusively(tmp_path, "sweeping"), refused:
        lock_exclusively(tmp_path, "sweeping")
    with lock_exclusively(tmp_path, "sweeping"):
        pass
