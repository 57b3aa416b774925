"""What every head that is fitted in one go must keep, found through the registry."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from support.protocols import clouds, noise, separable, target
from torch import Tensor
from torch.nn.functional import normalize

from fsbench.core.specs import FITTED, SGD, EpisodicSpec, FittedSpec, HeadSpec
from fsbench.data.episodes import EpisodeSampler
from protocols import EPISODIC
from protocols.base import Inputs
from protocols.heads import fitted

HEADS = tuple(name for name in FITTED.names() if name not in SGD)
every = pytest.mark.parametrize("name", HEADS)


def settings(name: str) -> FittedSpec:
    return FITTED.load(name)()


def fit(name: str, support: Tensor, query: Tensor) -> Callable[[Tensor], Tensor]:
    values = settings(name)
    if values.normalize == "l2":
        support = normalize(support, dim=-1)
    head: Callable[..., Callable[[Tensor], Tensor]] = EPISODIC.load(name).fit  # type: ignore[attr-defined]
    return head(values, support, *((query,) if values.transductive else ()))


@every
def test_its_spec_holds_all_its_settings_and_names_those_that_are_no_default(name: str) -> None:
    spec = EpisodicSpec.model_validate({"adaptation": name})
    assert spec.model_dump(mode="json")["fitted"] == settings(name).model_dump(mode="json")
    assert EpisodicSpec.model_validate_json(spec.canonical()) == spec
    assert spec.variant == (("transductive",) if spec.transductive else ())
    other = "none" if settings(name).normalize == "l2" else "l2"
    changed = spec.model_validate({"adaptation": name, "fitted": {"normalize": other}})
    assert changed.variant == (*spec.variant, f"normalize={other}")
    assert changed.label.endswith(f"-normalize={other}")
    facts = {"transductive": not spec.transductive}
    for wrong in ({"fitted": {"no": 1}}, {"fitted": facts}, {"head": HeadSpec()}):
        with pytest.raises(ValidationError, match=r"no|transductive is|trains no head"):
            EpisodicSpec.model_validate({"adaptation": name, **wrong})


@every
def test_an_image_is_scored_the_same_in_any_company(name: str) -> None:
    """So the same fit serves any set of queries; only the fit of a transductive head sees them."""
    support, query = clouds()
    classify = fit(name, support, query)
    whole = classify(query)
    assert whole.shape == (4, 35, 5)
    torch.testing.assert_close(classify(query[:, 30:32]), whole[:, 30:32])
    moved = fit(name, support, query * 0.9)(query)
    assert torch.equal(moved, whole) != settings(name).transductive
    for i in range(4):
        part = slice(i, i + 1)
        alone = fit(name, support[part], query[part])(query[part])
        torch.testing.assert_close(alone, whole[part])


def small_task(name: str) -> tuple[Inputs, EpisodicSpec]:
    """Features that are neither easy nor hard to tell apart, and a spec of few queries."""
    dataset = target()
    inputs = Inputs(None, dataset, noise(dataset) + 0.12 * separable(dataset))
    values = {"adaptation": name, "episode": {"k_shot": 3, "n_query": 4}}
    return inputs, EpisodicSpec.model_validate(values)


@every
def test_threads_and_pieces_change_no_outcome(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitted, "BLOCK", 12)
    monkeypatch.setattr(fitted, "HALF", 6)
    inputs, spec = small_task(name)
    blocks = []
    for pieces, threads in (((6, 3), 1), ((6, 3), 3), ((2,), 2)):
        monkeypatch.setattr(fitted, "PIECES", pieces)
        torch.set_num_threads(threads)
        blocks.append(EPISODIC.load(name).evaluate_block(inputs, spec, 1))
    assert 0.3 < blocks[0].accuracy.mean() < 0.97, "too easy or too hard to tell anything"
    for other in blocks[1:]:
        np.testing.assert_array_equal(other.correct, blocks[0].correct)
        np.testing.assert_array_equal(other.dense_correct, blocks[0].dense_correct)


@every
def test_dense_queries_are_scored_by_the_same_head(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One episode after the other; not where a head knows the queries or is not linear."""
    monkeypatch.setattr(fitted, "BLOCK", 4)
    monkeypatch.setattr(fitted, "HALF", 4)
    monkeypatch.setattr(fitted, "PIECES", (2,))
    inputs, spec = small_task(name)
    dataset = inputs.dataset
    block = EPISODIC.load(name).evaluate_block(inputs, spec, 1)
    if name == "knn" or spec.transductive:
        assert block.dense_correct is None
        return
    assert block.dense_correct is not None
    assert block.dense_total is not None
    features = torch.from_numpy(inputs.features).double()
    features = normalize(features, dim=1) if settings(name).normalize == "l2" else features
    for row, i in enumerate(block.index.tolist()):
        episode = EpisodeSampler.of(spec.episode, dataset).episode(i)
        support, query = (torch.from_numpy(p) for p in episode.images(dataset.by_class))
        head = EPISODIC.load(name).fit  # type: ignore[attr-defined]
        classify = head(settings(name), features[support][None])
        for label, class_id in enumerate(episode.class_ids):
            candidates = torch.from_numpy(
                dataset.by_class[int(class_id)][episode.query_candidates[label]]
            )
            right = classify(features[candidates][None]).argmax(2) == label
            assert block.dense_correct[row, label] == right.sum()
            assert block.dense_total[row, label] == len(candidates)
            assert np.isin(query[label], candidates).all()


@pytest.mark.parametrize("name", ["centroid", "ridge"])
def test_normalize_scales_every_feature_vector(name: str) -> None:
    dataset = target()
    features = noise(dataset) + 0.1 * separable(dataset)
    scaled = features * np.linspace(0.1, 9, len(dataset), dtype=np.float32)[:, None]

    def correct(vectors: NDArray[np.float32], normalize: str) -> NDArray[np.bool_]:
        values = {"adaptation": name, "episode": {"n_query": 4}, "fitted": {"normalize": normalize}}
        spec = EpisodicSpec.model_validate(values)
        return EPISODIC.load(name).evaluate_block(Inputs(None, dataset, vectors), spec, 0).correct

    assert (correct(features, "l2") != correct(scaled, "l2")).mean() < 1e-3
    assert (correct(features, "l2") != correct(scaled, "none")).mean() > 0.05


@pytest.mark.parametrize(
    ("k", "dim", "size"), [(1, 13, 100), (1, 512, 50), (5, 2048, 10), (50, 2048, 2)]
)
def test_pieces_are_functions_of_the_shapes(k: int, dim: int, size: int) -> None:
    spec = EpisodicSpec.model_validate({"adaptation": "ridge", "episode": {"k_shot": k}})
    assert fitted.fitted_piece_size(spec, dim) == size
    assert all(fitted.BLOCK % piece == 0 for piece in fitted.PIECES)
