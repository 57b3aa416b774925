"""What every episodic protocol must keep, found through the registry.

A protocol that adapts the backbone itself is given a small one of its own to adapt; features are
what that backbone makes of the images.
"""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from support.protocols import noise, separable, target

from fsbench.core.errors import DataError
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.data.base import TargetDataset
from protocols import EPISODIC
from protocols.base import Inputs

every = pytest.mark.parametrize("adaptation", EPISODIC.names())


def spec(adaptation: str, k_shot: int = 1) -> EpisodicSpec:
    return EpisodicSpec.model_validate(
        {"adaptation": adaptation, "episode": EpisodeSpec(k_shot=k_shot, n_query=8)}
    )


def run(
    adaptation: str,
    features: NDArray[np.float32],
    block: int = 0,
    k_shot: int = 1,
    dataset: TargetDataset | None = None,
    device: str = "cpu",
) -> EpisodeRecords:
    inputs = Inputs(None, dataset or target(), features, device)
    return EPISODIC.load(adaptation).evaluate_block(inputs, spec(adaptation, k_shot), block)


@every
def test_a_file_names_its_head_and_a_block_holds_its_episodes_whole(adaptation: str) -> None:
    protocol = EPISODIC.load(adaptation)
    assert protocol.ADAPTATION == adaptation == spec(adaptation).adaptation
    assert protocol.__name__ == f"protocols.episodic.{adaptation}"  # type: ignore[attr-defined]
    size = protocol.block_size(spec(adaptation), 13)
    assert size >= 2
    records = run(adaptation, noise(target()), block=2)
    assert records.index.tolist() == list(range(2 * size, 3 * size))
    assert records.correct.shape == (size, 5, 8)
    assert records.collapsed.shape == records.finite.shape == (size,)


@every
def test_labels_that_features_know_nothing_of_give_chance(adaptation: str) -> None:
    accuracy = run(adaptation, noise(target())).accuracy
    error = accuracy.std(ddof=1) / np.sqrt(len(accuracy))
    assert abs(accuracy.mean() - 0.2) < 4 * error


@every
@pytest.mark.parametrize("k_shot", [1, 4])
def test_separable_features_give_every_query(adaptation: str, k_shot: int, device: str) -> None:
    records = run(adaptation, separable(target()), k_shot=k_shot, device=device)
    assert records.correct.all()
    assert records.finite.all()
    assert not records.collapsed.any()


@every
def test_order_and_repetition_change_no_bit_and_backbones_meet_the_same_episodes(
    adaptation: str, device: str
) -> None:
    features = noise(target()) + 0.1 * separable(target())
    before = features.copy()
    features.flags.writeable = False
    evaluate = partial(run, adaptation, features, device=device)
    forward = [evaluate(block) for block in (0, 1)]
    backward = [evaluate(block) for block in (1, 0)][::-1]
    for a, b in zip(forward, backward, strict=True):
        np.testing.assert_array_equal(a.index, b.index)
        np.testing.assert_array_equal(a.correct, b.correct)
    assert (forward[0].correct != forward[1].correct).any()
    np.testing.assert_array_equal(features, before)
    other = run(adaptation, noise(target(), dim=40, seed=1), device=device)
    np.testing.assert_array_equal(forward[0].index, other.index)
    assert (forward[0].correct != other.correct).any()


@every
def test_a_data_set_too_small_is_refused(adaptation: str) -> None:
    small = target(counts=(8, 9, 9, 9, 9))
    says = "8 images in class 'class0'; 1-shot with 8 queries needs 9"
    with pytest.raises(DataError, match=says):
        run(adaptation, noise(small), dataset=small)
