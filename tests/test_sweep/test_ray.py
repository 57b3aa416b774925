"""The Ray engine: a cluster of three nodes of which one is killed gives what processes give."""

import sys
from pathlib import Path

import pytest
from stress import nodes
from stress.trial import Trials

from fsbench.core.errors import UsageError
from fsbench.sweep import engines as engine


@pytest.fixture
def _no_network() -> None:
    """Instead of the guard of all tests: Ray talks to itself by this machine's own address."""


@pytest.mark.slow
def test_a_sweep_outlives_a_node_and_gives_what_the_local_engine_gives(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install 'fsbench[ray]'")
    row = nodes.killed(Trials(tmp_path), range(1))
    assert row.whole, row.said


def test_without_ray_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'fsbench\[ray\]'"):
        engine.import_ray()


@pytest.mark.parametrize(("threads", "refused"), [(4, False), (5, True)])
def test_a_job_that_fits_no_node_is_refused(threads: int, refused: bool) -> None:
    nodes = [{"Resources": {"CPU": 4.0}}, {"Resources": {}}]
    if not refused:
        engine.require_cpus(nodes, threads)
        return
    with pytest.raises(UsageError, match="the largest node of the cluster has 4"):
        engine.require_cpus(nodes, threads)
