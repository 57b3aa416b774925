"""The only door to learn2learn: what it hands over, and what it says where nobody is in."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fsbench.core.specs import EpisodeSpec
from fsbench.data.episodes import EpisodeSampler
from pretrain.training import l2l

present = pytest.mark.skipif(
    find_spec("learn2learn") is None, reason="learn2learn is not installed: run `make meta`"
)
LABELS = np.arange(24) % 4 * 3
"""Classes 0, 3, 6 and 9 with six images each."""
SPEC = EpisodeSpec(n_way=3, k_shot=2, n_query=3)


class Numbered(torch.utils.data.Dataset[Tensor]):
    """Image j is a pixel of value j."""

    def __len__(self) -> int:
        return len(LABELS)

    def __getitem__(self, index: int) -> Tensor:
        return torch.full((1, 1, 1), float(index))


@present
def test_task_i_of_the_taskset_is_episode_i_whenever_it_is_asked_for() -> None:
    by_class = {int(c): np.flatnonzero(c == LABELS) for c in np.unique(LABELS)}
    drawn = EpisodeSampler(SPEC, "made up", dict.fromkeys(by_class, 6))
    tasks = l2l.build_taskset(drawn, Numbered(), by_class, 5)
    learn2learn = l2l.import_learn2learn()
    assert isinstance(tasks, learn2learn.data.Taskset)
    assert len(tasks) == 5
    for i in (3, 0, 4, 3):
        (support, near), (query, near_query) = learn2learn.data.partition_task(*tasks[i], shots=2)
        ours = drawn.episode(i).images(by_class)
        assert support.flatten().tolist() == ours[0].ravel().tolist()
        assert query.flatten().tolist() == ours[1].ravel().tolist()
        assert near.tolist() == [0, 0, 1, 1, 2, 2]
        assert near_query.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [int(x[0]) for x, _ in tasks] == [int(tasks[i][0][0]) for i in range(5)]
    indices = tasks.dataset.labels_to_indices
    assert {c: list(images) for c, images in indices.items()} == {
        c: images.tolist() for c, images in by_class.items()
    }


@present
@pytest.mark.parametrize("training", [True, False])
def test_a_copy_shares_running_statistics_and_moves_them_in_training_only(training: bool) -> None:
    network = nn.Sequential(nn.BatchNorm1d(2)).train(training)
    copy = l2l.maml_copy(network, 0.1, first_order=True)
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    copy.adapt(copy(x).square().sum())
    assert isinstance(network[0].running_mean, Tensor)
    expected = [0.2, 0.4] if training else [0.0, 0.0]
    assert network[0].running_mean.tolist() == pytest.approx(expected)
    assert network[0].weight.tolist() == [1.0, 1.0]
    assert network[0].weight.grad is None


def test_importing_it_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "learn2learn.py").write_text("import sys; print('retired', file=sys.stderr)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "learn2learn", None)  # restored afterwards, whatever it was
    del sys.modules["learn2learn"]
    assert l2l.import_learn2learn().__file__ == str(tmp_path / "learn2learn.py")
    assert capsys.readouterr() == ("", "")
