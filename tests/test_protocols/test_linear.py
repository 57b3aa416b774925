"""The episodic protocol `linear` against plain loops: sampled queries, dense ones, blocks."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import kstest
from support.protocols import noise, separable, target, with_groups
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.core.records import EpisodeRecords
from fsbench.core.seeding import permutations
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, HeadSpec
from fsbench.data.episodes import EpisodeSampler
from protocols.base import Inputs
from protocols.episodic import linear
from protocols.episodic.linear import block_size, evaluate_block, trained_piece_size
from protocols.heads import gram, scoring
from protocols.heads.gram import UntrainedHeads, draw_linear_init, gather_features

EPISODE = EpisodeSpec(k_shot=2, n_query=6)
SPEC = EpisodicSpec(episode=EPISODE, head=HeadSpec(epochs=25, dtype="float64"))
SPEC_32 = SPEC.model_copy(update={"head": HeadSpec(epochs=6)})


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "BLOCK", 12)
    monkeypatch.setattr(linear, "PIECES", (4,))
    monkeypatch.setattr(linear, "PREPARED", 7)
    monkeypatch.setattr(linear, "SCORED", 3)
    monkeypatch.setattr(gram, "SLICE_BYTES", 2 * 8 * 16 * 35)
    monkeypatch.setattr(scoring, "IMAGES_AT_ONCE", 7)


def blobs(device: str = "cpu") -> Inputs:
    """Between chance and perfect; photographs in pairs."""
    dataset = with_groups(target(), lambda image: f"{image[:-1]}{int(image[-1]) // 2}")
    return Inputs(None, dataset, noise(dataset) + 0.4 * separable(dataset), device)


def counts(block: EpisodeRecords) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Right and all, (E, n_way) each."""
    assert block.dense_correct is not None
    assert block.dense_total is not None
    return block.dense_correct, block.dense_total


def train_plainly(inputs: Inputs, spec: EpisodicSpec, i: int) -> NDArray[np.int64]:
    """Train the head of episode i in a plain loop; return its predictions for all images."""
    name, e, h = inputs.dataset.name, spec.episode, spec.head
    support, _ = EpisodeSampler.of(e, inputs.dataset).episode(i).images(inputs.dataset.by_class)
    features = torch.from_numpy(inputs.features[support.ravel()]).double()
    names = (e.classic.digest(), name, i)
    start = torch.from_numpy(draw_linear_init(features.shape[1], e.n_way, *names, "head-init"))
    head = nn.Linear(features.shape[1], e.n_way).double()
    with torch.no_grad():
        head.weight.copy_(start[:-1].T)
        head.bias.copy_(start[-1])
    sgd = torch.optim.SGD(head.parameters(), h.lr, h.momentum, h.dampening, h.weight_decay)
    labels = torch.arange(e.n_way).repeat_interleave(e.k_shot)
    for order in permutations(h.epochs, len(labels), *names, "head-order"):
        for batch in torch.from_numpy(order).split(h.batch_size):
            sgd.zero_grad()
            cross_entropy(head(features[batch]), labels[batch]).backward()
            sgd.step()
    with torch.no_grad():
        return head(torch.from_numpy(inputs.features).double()).argmax(dim=1).numpy()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("track", "shots", "block"),
    [("classic", 2, 0), ("classic", 3, 1), ("classic", 3, 3), ("disjoint", 2, 1)],
)
def test_a_block_equals_plain_loops_over_its_episodes(
    track: str, shots: int, block: int, device: str
) -> None:
    """Trained together (ten support images) and piece by piece (fifteen).

    Dense queries are all images left, without the photographs of the support where disjoint.
    """
    inputs = blobs(device)
    dataset = inputs.dataset
    settings = {"track": track, "k_shot": shots}
    spec = SPEC.model_copy(update={"episode": EPISODE.model_copy(update=settings)})
    records = evaluate_block(inputs, spec, block)
    assert records.index.tolist() == list(range(block * 12, block * 12 + 12))
    right, total = counts(records)
    pair = [image[:-1] + str(int(image[-1]) // 2) for image in dataset.canonical_ids]
    for row, i in enumerate(records.index.tolist()):
        predicted = train_plainly(inputs, spec, i)
        episode = EpisodeSampler.of(spec.episode, dataset).episode(i)
        support, query = episode.images(dataset.by_class)
        np.testing.assert_array_equal(
            records.correct[row], predicted[query] == np.arange(5)[:, None]
        )
        met = {pair[image] for image in support.ravel()}
        for label, c in enumerate(episode.class_ids):
            left = [
                image
                for image in np.flatnonzero(dataset.labels == c)
                if image not in support and (track == "classic" or pair[image] not in met)
            ]
            assert total[row, label] == len(left)
            assert right[row, label] == (predicted[left] == label).sum()
    assert 0.3 < records.accuracy.mean() < 0.95, "too easy or too hard to tell anything"
    assert len(set(total.ravel().tolist())) > 1
    assert records.dense_accuracy is not None
    np.testing.assert_allclose(records.dense_accuracy, (right / total).mean(axis=1))


def test_sampled_queries_count_as_they_were_scored() -> None:
    """Ties broken otherwise in another product make no query right that was scored wrong."""
    inputs = blobs()
    sampler = EpisodeSampler.of(EPISODE, inputs.dataset)
    episodes = [sampler.episode(i) for i in range(3)]
    correct = np.random.default_rng(0).random((3, EPISODE.n_way, EPISODE.n_query)) < 0.5
    flags = np.zeros(3, dtype=bool)
    records = EpisodeRecords(np.arange(3), correct, flags, ~flags)
    padded = gather_features(inputs.features, np.arange(1), torch.empty(0)).shape[1]
    tied = UntrainedHeads(torch.zeros(3, padded, EPISODE.n_way), torch.zeros(3, EPISODE.n_way))
    right, total = counts(scoring.score_dense_queries(records, inputs, episodes, tied))
    others = total - EPISODE.n_query
    first = np.arange(EPISODE.n_way) == 0  # argmax of equal logits
    np.testing.assert_array_equal(right, correct.sum(axis=2) + others * first)


@pytest.mark.usefixtures("small_pieces")
def test_threads_change_no_bit() -> None:
    dataset = target()
    inputs = Inputs(None, dataset, noise(dataset))
    one = evaluate_block(inputs, SPEC_32, 0)
    torch.set_num_threads(3)
    three = evaluate_block(inputs, SPEC_32, 0)
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


def test_init_is_that_of_nn_linear_for_weight_and_bias() -> None:
    drawn = draw_linear_init(400, 10, "init")
    assert drawn.shape == (401, 10)
    bound = 1 / np.sqrt(400)
    torch_bound = float(nn.Linear(400, 10).weight.detach().abs().max())
    assert 0.98 * bound < torch_bound <= bound
    assert kstest(drawn[:-1].ravel(), "uniform", args=(-bound, 2 * bound)).pvalue > 1e-3
    many = np.stack([draw_linear_init(4, 5, "bias", i)[-1] for i in range(200)])
    assert kstest(many.ravel(), "uniform", args=(-0.5, 1.0)).pvalue > 1e-3


def test_sizes_are_functions_of_the_shapes() -> None:
    def sizes(k: int, dtype: str = "float32") -> tuple[int, int]:
        head = HeadSpec.model_validate({"dtype": dtype})
        spec = EpisodicSpec(episode=EpisodeSpec(k_shot=k), head=head)
        return block_size(spec, 512), trained_piece_size(spec)

    pieces = [sizes(k)[1] for k in (1, 2, 3, 5, 20, 50, 1000)]
    assert pieces == [200, 200, 100, 100, 100, 50, 2]
    assert sizes(50, "float64") == (200, 25)
    assert all(linear.BLOCK % size == 0 for size in linear.PIECES)
