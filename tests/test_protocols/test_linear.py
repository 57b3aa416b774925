"""The episodic protocol `linear` against its own definition, one episode at a time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from support.protocols import noise, separable, target
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.core.errors import DataError
from fsbench.core.seeding import permutations
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, HeadSpec
from fsbench.data.episodes import EpisodeSampler
from protocols.base import Inputs
from protocols.episodic import linear
from protocols.episodic.linear import block_size, evaluate_block, trained_piece_size
from protocols.heads import gram
from protocols.heads.gram import draw_linear_init

SPEC = EpisodicSpec(
    episode=EpisodeSpec(k_shot=3, n_query=4), head=HeadSpec(epochs=25, dtype="float64")
)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "BLOCK", 12)
    monkeypatch.setattr(linear, "PIECES", (3,))
    monkeypatch.setattr(linear, "PREPARED", 7)
    monkeypatch.setattr(linear, "SCORED", 3)
    monkeypatch.setattr(gram, "SLICE_BYTES", 2 * 8 * 16 * 35)


def one_episode(inputs: Inputs, spec: EpisodicSpec, i: int) -> np.ndarray:
    """Which queries (n_way, n_query) of episode i a plain loop gets right."""
    dataset, e = inputs.dataset, spec.episode
    episode = EpisodeSampler(e, dataset.name, dataset.class_counts).episode(i)
    features = torch.from_numpy(inputs.features).double()
    lists = [np.flatnonzero(dataset.labels == c) for c in episode.class_ids]
    support = torch.stack([features[m[r]] for m, r in zip(lists, episode.support, strict=True)])
    query = torch.stack([features[m[r]] for m, r in zip(lists, episode.query, strict=True)])
    start = torch.from_numpy(
        draw_linear_init(features.shape[1], e.n_way, e.digest(), dataset.name, i, "head-init")
    )
    head = nn.Linear(features.shape[1], e.n_way).double()
    with torch.no_grad():
        head.weight.copy_(start[:-1].T)
        head.bias.copy_(start[-1])
    h = spec.head
    sgd = torch.optim.SGD(head.parameters(), h.lr, h.momentum, h.dampening, h.weight_decay)
    labels = torch.arange(e.n_way).repeat_interleave(e.k_shot)
    n = e.n_way * e.k_shot
    for order in permutations(h.epochs, n, e.digest(), dataset.name, i, "head-order"):
        for batch in torch.from_numpy(order).split(h.batch_size):
            sgd.zero_grad()
            cross_entropy(head(support.flatten(0, 1)[batch]), labels[batch]).backward()
            sgd.step()
    right = head(query).argmax(dim=2) == torch.arange(e.n_way)[:, None]
    return right.numpy()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("block", [0, 3])
@pytest.mark.parametrize("shots", [2, 3])
def test_a_block_equals_plain_loops_over_its_episodes(block: int, shots: int) -> None:
    """Trained together (ten support images) and piece by piece (fifteen)."""
    dataset = target()
    spec = SPEC.model_copy(update={"episode": EpisodeSpec(k_shot=shots, n_query=4)})
    inputs = Inputs(None, dataset, noise(dataset) + 0.4 * separable(dataset))
    computed = evaluate_block(inputs, spec, block)
    assert computed.index.tolist() == list(range(block * 12, block * 12 + 12))
    assert 0.3 < computed.accuracy.mean() < 0.95, "too easy or too hard to tell anything"
    for row, i in enumerate(computed.index.tolist()):
        np.testing.assert_array_equal(computed.correct[row], one_episode(inputs, spec, i))


@pytest.mark.usefixtures("small_pieces")
def test_threads_change_no_bit() -> None:
    dataset = target()
    spec = SPEC.model_copy(update={"head": HeadSpec(epochs=6)})
    inputs = Inputs(None, dataset, noise(dataset))
    one = evaluate_block(inputs, spec, 0)
    torch.set_num_threads(3)
    three = evaluate_block(inputs, spec, 0)
    with ThreadPoolExecutor(1) as later:
        assert torch.get_num_threads() == later.submit(torch.get_num_threads).result() == 3
    np.testing.assert_array_equal(one.correct, three.correct)


@pytest.mark.usefixtures("small_pieces")
def test_collapsed_and_non_finite_episodes_are_marked_and_counted() -> None:
    dataset = target()
    huge = noise(dataset) * 1e30
    assert not evaluate_block(Inputs(None, dataset, huge), SPEC_32, 0).finite.any()
    same = np.ones_like(noise(dataset))
    block = evaluate_block(Inputs(None, dataset, same), SPEC_32, 0)
    assert block.finite.all()
    assert block.collapsed.all()
    np.testing.assert_allclose(block.accuracy, 0.2)


SPEC_32 = SPEC.model_copy(update={"head": HeadSpec(epochs=6)})


@pytest.mark.usefixtures("small_pieces")
def test_a_data_set_too_small_is_refused() -> None:
    dataset = target(counts=(6, 9, 9, 9, 9))
    with pytest.raises(
        DataError, match="6 images in class 'class0'; 3-shot with 4 queries needs 7"
    ):
        evaluate_block(Inputs(None, dataset, noise(dataset)), SPEC, 0)


def test_sizes_are_functions_of_the_shapes() -> None:
    def sizes(k: int, dtype: str = "float32") -> tuple[int, int]:
        head = HeadSpec.model_validate({"dtype": dtype})
        spec = EpisodicSpec(episode=EpisodeSpec(k_shot=k), head=head)
        return block_size(spec, 512), trained_piece_size(spec)

    assert [sizes(k) for k in (1, 2, 3, 5, 20, 50, 1000)] == [
        (200, 200),
        (200, 200),
        (200, 100),
        (200, 100),
        (200, 100),
        (200, 50),
        (200, 2),
    ]
    assert sizes(50, "float64") == (200, 25)
    assert all(linear.BLOCK % size == 0 for size in linear.PIECES)
