"""The scalar recurrence against torch.optim.SGD on one parameter."""

import numpy as np
import pytest
import torch

from fsbench.core.specs import HeadSpec
from protocols.heads.recurrence import (
    CHUNK_STEPS,
    gradient_gains,
    initial_weight_share,
    split_into_chunks,
    step_of_position,
    step_responses,
    transition_powers,
)

SPEC = HeadSpec(lr=0.3, momentum=0.8, dampening=0.6, weight_decay=0.2)


def sgd(start: float, gradients: list[float]) -> list[float]:
    """The parameter after each step under the given loss gradients."""
    a = torch.tensor([start], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD(
        [a],
        lr=SPEC.lr,
        momentum=SPEC.momentum,
        dampening=SPEC.dampening,
        weight_decay=SPEC.weight_decay,
    )
    path = [start]
    for gradient in gradients:
        a.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        path.append(float(a.detach()))
    return path


def test_shrinkage_is_sgd_without_a_loss() -> None:
    np.testing.assert_allclose(initial_weight_share(SPEC, 9), sgd(1.0, [0.0] * 9), rtol=1e-14)


@pytest.mark.parametrize("when", [0, 1, 4])
def test_the_response_to_one_gradient(when: int) -> None:
    """A coefficient at 0 gets one gradient; batches of one row, so the gain has no mean in it."""
    n_steps = 9
    path = sgd(0.0, [2.5 if t == when else 0.0 for t in range(n_steps)])
    gain = gradient_gains(HeadSpec(**{**SPEC.model_dump(), "batch_size": 1, "epochs": 1}), n_steps)
    expected = 2.5 * gain[when] * step_responses(SPEC, n_steps)[:, 0]
    np.testing.assert_allclose(path[: when + 1], 0.0)
    np.testing.assert_allclose(path[when + 1 :], expected[: n_steps - when], rtol=1e-13)


def test_powers_compose() -> None:
    powers = transition_powers(SPEC, 5)
    np.testing.assert_allclose(powers[2] @ powers[3], powers[5], rtol=1e-14)


def test_gains_hold_the_mean_over_the_batch_as_large_as_it_is() -> None:
    spec = HeadSpec(batch_size=4, dampening=0.9, epochs=2)
    np.testing.assert_array_equal(step_of_position(spec, 6), [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3])
    first, later = [1 / 4] * 4 + [0.1 / 2] * 2, [0.1 / 4] * 4 + [0.1 / 2] * 2
    np.testing.assert_allclose(gradient_gains(spec, 6), first + later)


@pytest.mark.parametrize("n", [3, 5, 25, 65, 100, 250])
def test_chunks_are_whole_epochs_or_equal_parts_of_one_and_repeat(n: int) -> None:
    spec = HeadSpec(epochs=40)
    rows, chunks = zip(*split_into_chunks(spec, n, torch.empty(0)), strict=True)
    assert [part.start for part in rows] == [0, *(part.stop for part in rows[:-1])]
    assert rows[-1].stop == 40 * n
    step = step_of_position(spec, n)
    for part, chunk in zip(rows, chunks, strict=True):
        assert chunk.batches == tuple(np.unique(step[part], return_counts=True)[1])
        assert len(chunk.batches) <= CHUNK_STEPS
        whole = part.start % n == 0 and part.stop % n == 0
        assert whole or part.start // n == (part.stop - 1) // n
    assert len(set(map(id, chunks))) <= 6
