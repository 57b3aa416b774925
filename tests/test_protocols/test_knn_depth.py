"""The k-NN probe against scikit-learn's, and prediction depths by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import timm
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from support.pretrain import source, train
from torch import Tensor

from fsbench import backbones
from fsbench.backbones import Classifier
from fsbench.core.errors import UsageError
from fsbench.data import Split
from protocols.analyses.inputs import AnalysisInput
from protocols.analyses.knn_depth import (
    BlockProbe,
    KnnDepth,
    KnnDepthSettings,
    NearestNeighbours,
    probe_blocks,
    run,
)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Classifier:
    run = train(tmp_path_factory.mktemp("runs") / "run", "normal")
    return backbones.load_classifier(f"run:{run}")


def unlearnable() -> Split:
    """Ten labels in every class: the vote depends on which neighbours are found."""
    return Split(source().train.images, np.arange(40) // 4)


def outputs(network: Classifier, images: NDArray[np.uint8]) -> tuple[list[Tensor], Tensor]:
    """What the four stages of the toy net give, and its logits, without a hook."""
    model, facts = network.model, network.facts
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (facts.mean, facts.std))
    x = (torch.from_numpy(images).float() / 255 - mean) / std
    with torch.no_grad():
        logits = model(x)
        x, features = model.bn1(model.conv1(x)).relu(), []  # type: ignore[operator]
        for stage in ("layer1", "layer2", "layer3", "layer4"):
            x = getattr(model, stage)(x)
            features.append(x.clone())
    return features, logits


@pytest.mark.parametrize("pooling", ["average", "flatten"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_it_is_scikit_learns_probe_behind_every_block(
    network: Classifier, pooling: str, metric: str
) -> None:
    reference, query = unlearnable(), source().val
    spec = KnnDepthSettings.model_validate({"pooling": pooling, "metric": metric, "batch_size": 7})
    result = probe_blocks(network, reference, query, spec)
    (reference_features, _), (query_features, logits) = (
        outputs(network, s.images) for s in (reference, query)
    )
    assert result.blocks == ("layer1.0", "layer2.0", "layer3.0", "layer4.0")
    assert np.array_equal(result.predicted, logits.argmax(1).numpy())
    for block, sides in enumerate(zip(reference_features, query_features, strict=True)):
        flat = [x.mean((2, 3)) if pooling == "average" else x.flatten(1) for x in sides]
        knn = KNeighborsClassifier(5, metric=metric, algorithm="brute")
        expected = knn.fit(flat[0].double(), reference.labels).predict(flat[1].double())
        assert np.array_equal(result.probes[block], expected)
        assert result.accuracies[block] == (expected == query.labels).mean()


def test_batches_and_memory_change_nothing(network: Classifier) -> None:
    reference, query = unlearnable(), source().val
    whole = probe_blocks(network, reference, query)
    for fields in ({"batch_size": 3}, {"memory": 1}, {"memory": 700}):
        parts = probe_blocks(network, reference, query, KnnDepthSettings(**fields))
        assert np.array_equal(parts.probes, whole.probes)
        assert np.array_equal(parts.predicted, whole.predicted)


def test_a_query_image_among_the_reference_is_its_own_nearest(network: Classifier) -> None:
    result = probe_blocks(network, source().val, source().val, KnnDepthSettings(k=1))
    assert (result.probes == source().val.labels).all()
    assert (result.accuracies == 1).all()
    few = Split(source().train.images[:3], source().train.labels[:3])
    with pytest.raises(UsageError, match="k = 5 neighbours need as many"):
        probe_blocks(network, few, source().val)


def test_neighbours_far_from_the_origin_are_distinguished() -> None:
    """Squares of 1e4 leave float32 no digits for distances of 0.1: hence the shift."""
    nearest = NearestNeighbours(torch.full((1, 2), 1e4), 1)
    points = 1e4 + torch.tensor([[0.4, 0.0], [0.1, 0.0], [0.0, -0.3]])
    nearest.update(points, torch.tensor([0, 1, 2]))
    assert nearest.vote().tolist() == [1]


def test_the_smallest_label_wins_a_tie_and_the_most_votes_win() -> None:
    nearest = NearestNeighbours(torch.zeros(1, 1), 4)
    nearest.update(torch.tensor([[0.1], [0.2]]), torch.tensor([7, 3]))
    nearest.update(torch.tensor([[0.3], [0.4], [0.5]]), torch.tensor([7, 3, 3]))
    assert nearest.vote().tolist() == [3]
    nearest.update(torch.tensor([[0.0]]), torch.tensor([7]))
    assert nearest.vote().tolist() == [7]


def test_depth_is_the_first_probe_from_which_on_all_agree() -> None:
    probes = np.array([[1, 1, 2, 2, 1], [1, 2, 2, 1, 1], [1, 1, 1, 2, 2]])
    predicted = np.array([1, 1, 1, 1, 1])
    result = KnnDepth(("a", "b", "c"), probes, predicted, np.array([1, 2, 1, 2, 2]))
    assert result.depths.tolist() == [0, 2, 2, 3, 3]
    assert result.accuracies.tolist() == [2 / 5, 2 / 5, 4 / 5]


def test_the_finding_holds_accuracies_and_the_spread_of_depths(network: Classifier) -> None:
    inputs = AnalysisInput(backbones.load_backbone(network.facts.ref), network, source())
    whole = probe_blocks(network, source().train, source().val)
    finding = run(inputs, KnnDepthSettings())
    accuracy, depth = finding.views
    assert accuracy.values == tuple(100 * whole.accuracies)
    assert accuracy.places == whole.blocks
    counts = [(whole.depths == d).sum() for d in range(len(whole.blocks) + 1)]
    assert depth.values == pytest.approx([100 * n / 12 for n in counts])
    values = {m.name: m.value for m in finding.measures}
    assert (values["reference images"], values["query images"]) == (40, 12)
    assert values["mean prediction depth (blocks)"] == whole.depths.mean()
    assert values["accuracy behind block 4 (layer4.0)"] == whole.accuracies[3]


def test_maps_of_swin_have_their_channels_last() -> None:
    """Features behind the last block are averaged to its width, and earlier ones to theirs."""
    name = "swin_tiny_patch4_window7_224"
    model = timm.create_model(name, img_size=32, embed_dim=8, num_classes=3, window_size=2)
    blocks = [f"layers.{i}" for i in range(4)]
    facts = SimpleNamespace(mean=(0.5,) * 3, std=(0.5,) * 3)
    roles = SimpleNamespace(blocks=[[block] for block in blocks])
    network: Any = SimpleNamespace(model=model.eval(), roles=roles, facts=facts)
    images = np.arange(2 * 3 * 32 * 32, dtype=np.uint8).reshape(2, 3, 32, 32)
    features, _ = BlockProbe(network, KnnDepthSettings()).features(images)
    assert [f.shape for f in features] == [(2, 8), (2, 16), (2, 32), (2, 64)]
    x = (torch.from_numpy(images).float() / 255 - 0.5) / 0.5
    with torch.no_grad():
        stage = model.layers[0](model.patch_embed(x))  # (2, 8, 8, 8): rows, columns, channels
    torch.testing.assert_close(features[0], stage.mean(dim=(1, 2)))
