"""Batched heads against a torch.optim.SGD loop per episode (tolerances: protocols/README.md)."""

from typing import Any, NamedTuple

import pytest
import torch
from support.cases import read_cases
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fsbench.backbones.kernels import exact_float32
from fsbench.core.seeding import torch_generator
from fsbench.core.specs import HeadSpec
from protocols.heads.gram import UntrainedHeads, build_gram
from protocols.heads.sgd import train_heads

CASES = read_cases("heads")

WAY = 5


class Case(NamedTuple):
    support: Tensor
    query: Tensor
    labels: Tensor
    start: UntrainedHeads
    orders: Tensor


def case(k: int, dim: int, epochs: int, episodes: int = 2, norm2: float = 30.0) -> Case:
    """Rectified features with a class mean, |x|^2 = norm2, float64."""
    rng = torch_generator("heads", k, dim, epochs)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    means = draw(episodes, WAY, 1, dim)
    images = (means + draw(episodes, WAY, k + 3, dim)).relu() + 0.01
    images *= (norm2 / images.square().sum(-1, keepdim=True)).sqrt()
    n = WAY * k
    return Case(
        images[:, :, :k].flatten(1, 2),
        images[:, :, k:].flatten(1, 2),
        torch.arange(WAY).repeat_interleave(k),
        UntrainedHeads(draw(episodes, dim, WAY) / dim**0.5, draw(episodes, WAY) / dim**0.5),
        torch.argsort(torch.rand(episodes, epochs, n, generator=rng), dim=2),
    )


def reference(case: Case, spec: HeadSpec, episode: int) -> Tensor:
    """Query logits after a plain training loop, in float64."""
    support, labels = case.support[episode], case.labels
    head = nn.Linear(support.shape[1], WAY, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(case.start.weight[episode].T)
        head.bias.copy_(case.start.bias[episode])
    optimizer = torch.optim.SGD(
        head.parameters(),
        lr=spec.lr,
        momentum=spec.momentum,
        dampening=spec.dampening,
        weight_decay=spec.weight_decay,
    )
    for order in case.orders[episode]:
        for batch in order.split(spec.batch_size):
            optimizer.zero_grad()
            cross_entropy(head(support[batch]), labels[batch]).backward()
            optimizer.step()
    return head(case.query[episode]).detach()


def ours(
    case: Case, spec: HeadSpec, dtype: torch.dtype = torch.float64, device: str = "cpu"
) -> Tensor:
    """Query logits on the CPU, computed on a device."""
    start = UntrainedHeads(*(part.to(device, dtype) for part in case.start))
    support, query = case.support.to(device, dtype), case.query.to(device, dtype)
    labels, orders = case.labels.to(device), case.orders.to(device)
    with exact_float32(device):
        heads = train_heads(build_gram(support, support, start), labels, orders, spec)
        return heads.logits(build_gram(query, support, start)).cpu()


@pytest.mark.parametrize(("k", "dim", "epochs"), CASES["sizes"])
def test_float64_equals_the_sgd_loop(k: int, dim: int, epochs: int, device: str) -> None:
    data, spec = case(k, dim, epochs), HeadSpec(epochs=epochs)
    for episode, logits in enumerate(ours(data, spec, device=device)):
        expected = reference(data, spec, episode)
        assert (logits - expected).abs().max() <= 1e-9 * expected.abs().max()


@pytest.mark.parametrize("fields", CASES["linear"])
def test_every_setting_equals_the_sgd_loop(fields: dict[str, Any]) -> None:
    data = case(k=4, dim=24, epochs=12)
    spec = HeadSpec.model_validate({"epochs": 12, **fields})
    expected = torch.stack([reference(data, spec, episode) for episode in range(2)])
    assert (ours(data, spec) - expected).abs().max() <= 1e-9 * expected.abs().max()


@pytest.mark.parametrize("norm2", [30.0, 2000.0, 20000.0])
@pytest.mark.parametrize(("k", "epochs"), [(1, 100), (5, 100), (20, 4)])
def test_float32_stays_near_the_float64_loop(
    k: int, epochs: int, norm2: float, device: str
) -> None:
    data, spec = case(k, 128, epochs, norm2=norm2), HeadSpec(epochs=epochs)
    logits = ours(data, spec, torch.float32, device).double()
    for episode in range(len(logits)):
        expected = reference(data, spec, episode)
        allowed = 1e-4 * expected.abs().max()
        assert (logits[episode] - expected).abs().max() <= allowed
        top = expected.topk(2, dim=1).values
        clear = top[:, 0] - top[:, 1] > 2 * allowed
        assert clear.float().mean() > 0.9, "the margin would excuse everything"
        same = logits[episode].argmax(1) == expected.argmax(1)
        assert same[clear].all()


def test_a_diverging_episode_leaves_the_others_alone() -> None:
    data, spec = case(k=2, dim=8, epochs=5), HeadSpec(epochs=5)
    broken = data.support.clone()
    broken[0] *= 1e200
    logits = ours(data._replace(support=broken), spec)
    assert not logits[0].isfinite().all()
    torch.testing.assert_close(logits[1], ours(data, spec)[1], rtol=0, atol=1e-12)
