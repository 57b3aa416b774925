"""Dense queries: the score of the queries without the noise of their draw."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.protocols import noise, separable, target
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.seeding import permutations, uniforms
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, HeadSpec
from fsbench.data import DataRoots, load_target
from fsbench.data.episodes import EpisodeSampler
from protocols.base import Inputs
from protocols.episodic import linear
from protocols.episodic.linear import evaluate_block
from protocols.heads import scoring
from protocols.heads.gram import UntrainedHeads, draw_linear_init, gather_features

EPISODE = EpisodeSpec(k_shot=2, n_query=6)
SPEC = EpisodicSpec(episode=EPISODE, head=HeadSpec(epochs=25, dtype="float64"))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "BLOCK", 12)
    monkeypatch.setattr(linear, "PIECES", (4,))
    monkeypatch.setattr(linear, "PREPARED", 7)
    monkeypatch.setattr(linear, "SCORED", 3)
    monkeypatch.setattr(scoring, "IMAGES_AT_ONCE", 7)


def blobs() -> Inputs:
    """Between chance and perfect; photographs in pairs."""
    dataset = target().with_groups(lambda image: f"{image[:-1]}{int(image[-1]) // 2}")
    return Inputs(None, dataset, noise(dataset) + 0.4 * separable(dataset))


def counts(block: EpisodeRecords) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Right and all, (E, n_way) each."""
    assert block.dense_correct is not None
    assert block.dense_total is not None
    return block.dense_correct, block.dense_total


def exact_of(block: EpisodeRecords) -> NDArray[np.float64]:
    assert block.dense_accuracy is not None
    return block.dense_accuracy


def head_of(inputs: Inputs, spec: EpisodicSpec, i: int) -> tuple[nn.Linear, NDArray[np.int64]]:
    """A plainly trained head and its support images (n_way, k_shot)."""
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
    return head, support


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("track", "shots"), [("classic", 2), ("classic", 3), ("disjoint", 2)])
def test_counts_are_those_of_a_plain_loop_over_all_images_left(track: str, shots: int) -> None:
    inputs = blobs()
    dataset = inputs.dataset
    settings = {"track": track, "k_shot": shots}
    spec = SPEC.model_copy(update={"episode": EPISODE.model_copy(update=settings)})
    block = evaluate_block(inputs, spec, 1)
    right, total = counts(block)
    pair = [image[:-1] + str(int(image[-1]) // 2) for image in dataset.canonical_ids]
    for row, i in enumerate(block.index.tolist()):
        head, support = head_of(inputs, spec, i)
        met = {pair[image] for image in support.ravel()}
        with torch.no_grad():
            predicted = head(torch.from_numpy(inputs.features).double()).argmax(dim=1).numpy()
        drawn = EpisodeSampler.of(spec.episode, dataset).episode(i).class_ids
        for label, c in enumerate(drawn):
            left = [
                image
                for image in np.flatnonzero(dataset.labels == c)
                if image not in support and (track == "classic" or pair[image] not in met)
            ]
            assert total[row, label] == len(left)
            assert right[row, label] == (predicted[left] == label).sum()
    assert 0.3 < (right / total).mean() < 0.95, "too easy or too hard to tell anything"


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
def test_queries_are_scored_as_before_and_classes_count_alike() -> None:
    block = evaluate_block(blobs(), SPEC, 0)
    right, total = counts(block)
    assert (block.correct.sum(axis=2) <= right).all()
    assert len(set(total.ravel().tolist())) > 1
    by_hand = [
        sum(hits / n for hits, n in zip(*row, strict=True)) / 5
        for row in zip(right.tolist(), total.tolist(), strict=True)
    ]
    np.testing.assert_allclose(exact_of(block), by_hand)


def test_both_estimate_the_same_quantity_and_the_dense_one_with_the_smaller_spread() -> None:
    """Var(score) = Var(dense) + the noise of drawing 3 of a class's images, which is known."""
    spec = SPEC.model_copy(update={"episode": EpisodeSpec(k_shot=10, n_query=3)})
    dataset = target(counts=(60, 90, 40, 120, 80, 60))
    features = noise(dataset, dim=8) + 0.12 * separable(dataset, dim=8)
    inputs = Inputs(None, dataset, features)
    all_blocks = concatenate([evaluate_block(inputs, spec, block) for block in range(3)])
    score, exact, (right, total) = all_blocks.accuracy, exact_of(all_blocks), counts(all_blocks)
    assert len(score) == 600
    assert 0.3 < exact.mean() < 0.8
    gap = score - exact
    assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(len(gap))
    p = right / total
    drawn = (p * (1 - p) / 3 * (total - 3) / (total - 1)).sum(axis=1) / 25
    np.testing.assert_allclose(gap.var(), drawn.mean(), rtol=0.2)
    np.testing.assert_allclose(score.var(), exact.var() + drawn.mean(), rtol=0.2)
    assert exact.std() < 0.75 * score.std()


def test_the_size_of_a_chunk_changes_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "BLOCK", 4)
    monkeypatch.setattr(linear, "PIECES", (2,))
    whole = counts(evaluate_block(blobs(), SPEC, 0))
    monkeypatch.setattr(scoring, "IMAGES_AT_ONCE", 5)
    np.testing.assert_array_equal(whole, counts(evaluate_block(blobs(), SPEC, 0)))


@pytest.mark.realdata
def test_the_spread_shrinks_on_real_images(packs: Path) -> None:
    """EuroSAT, 5 shots, 95 images left a class; features: a fixed random layer on small pixels."""
    dataset = load_target("eurosat", DataRoots.parse([str(packs)]))
    small = [np.asarray(dataset.image(i).resize((8, 8)), np.float32) for i in range(len(dataset))]
    pixels = np.stack(small).reshape(len(dataset), -1) / 255
    layer = uniforms((pixels.shape[1], 256), "layer") - 0.5
    features = np.maximum(pixels @ layer, 0).astype(np.float32)
    spec = EpisodicSpec(episode=EpisodeSpec(k_shot=5))
    block = evaluate_block(Inputs(None, dataset, features), spec, 0)
    exact = exact_of(block)
    assert (counts(block)[1] == 95).all()
    gap = block.accuracy - exact
    assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(len(gap))
    assert exact.std() < 0.95 * block.accuracy.std()
