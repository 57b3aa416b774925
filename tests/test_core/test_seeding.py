"""Seeds from names: pinned values, independence, and that nothing global moves."""

from contextlib import nullcontext, suppress

import numpy as np
import pytest
import torch
from torch import Tensor

from fsbench.core.seeding import permutations, seed_for, stream, torch_generator, uniforms, words


def test_seeds_depend_on_every_name_and_on_order_and_type() -> None:
    names = [("a", "b"), ("b", "a"), ("a",), ("ab",), (1,), ("1",)]
    seeds = {seed_for(*name) for name in names}
    assert len(seeds) == len(names)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_words_are_pinned() -> None:
    """Episodes hang on these: a change here changes every published manifest."""
    assert words(3, "episode", 0).tolist() == words(5, "episode", 0)[:3].tolist()
    assert seed_for("episode", 0) == 4256747164913846212
    assert words(2, "episode", 0).tolist() == [15556699431108558285, 16793031952211803730]


def test_permutations_are_permutations_and_uniform() -> None:
    rows = permutations(6000, 3, "test")
    assert np.array_equal(np.sort(rows, axis=1), np.tile(np.arange(3), (6000, 1)))
    _, counts = np.unique(rows, axis=0, return_counts=True)
    chi2 = float(((counts - 1000.0) ** 2 / 1000.0).sum())
    assert len(counts) == 6
    assert chi2 < 20.5  # 99.9 % quantile with 5 degrees of freedom


def test_uniforms_fill_the_unit_interval() -> None:
    x = uniforms((1000, 10), "test")
    assert x.min() >= 0.0
    assert x.max() < 1.0
    assert abs(x.mean() - 0.5) < 0.02
    assert np.array_equal(uniforms((1000, 10), "test", below=0.3), x * 0.3)


@pytest.mark.parametrize("error", [None, KeyError])
def test_stream_seeds_the_inside_and_restores_the_outside(error: type[Exception] | None) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    inside: list[Tensor] = []
    for _ in range(2):
        with suppress(KeyError), stream("init", 0):
            inside.append(torch.rand(3))
            if error:
                raise error
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(*inside)
    one, other = (torch.rand(2, generator=torch_generator("x")) for _ in range(2))
    assert torch.equal(one, other)


def test_a_stream_on_a_gpu_seeds_no_other_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, fork = list[object](), torch.random.fork_rng
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices: fork(devices=[]))
    monkeypatch.setattr(torch.cuda, "device", lambda gpu: nullcontext(calls.append(str(gpu))))
    monkeypatch.setattr(torch.cuda, "manual_seed", calls.append)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: calls.append("all"))
    with stream("a", device="cuda:1"):
        assert torch.default_generator.initial_seed() == seed_for("a")
    assert calls == ["cuda:1", seed_for("a")]


@pytest.mark.gpu(2)
def test_the_numbers_of_other_gpus_go_on() -> None:
    torch.cuda.manual_seed_all(1)
    states = [torch.cuda.get_rng_state(i) for i in range(2)]
    with stream("a", device="cuda:1"):
        assert torch.equal(torch.cuda.get_rng_state(0), states[0])
        assert not torch.equal(torch.cuda.get_rng_state(1), states[1])
    assert torch.equal(torch.cuda.get_rng_state(1), states[1])
