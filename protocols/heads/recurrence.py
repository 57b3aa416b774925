"""SGD with momentum, dampening and weight decay as a linear recurrence, in float64 scalars.

One step of torch.optim.SGD on a coefficient a with velocity v and loss gradient g:

    v <- momentum * v + (1 - dampening) * (g + weight_decay * a)        first step: v <- g + ...
    a <- a - lr * v

Between gradients, (a, v) is multiplied by a constant 2 x 2 matrix, so what a past gradient has done
to `a` by now depends on nothing but its age. (PyTorch copies the first gradient into the momentum
buffer undamped; protocol.md 3.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsbench.core.specs import HeadSpec

Array = NDArray[np.float64]


def powers(spec: HeadSpec, n: int) -> Array:
    """M^0 .. M^n, shape (n + 1, 2, 2): (a, v) after so many steps without a gradient."""
    damped = 1 - spec.dampening
    decay = damped * spec.weight_decay
    step = np.array([[1 - spec.lr * decay, -spec.lr * spec.momentum], [decay, spec.momentum]])
    found = [np.eye(2)]
    for _ in range(n):
        found.append(step @ found[-1])
    return np.array(found)


def responses(spec: HeadSpec, n: int) -> Array:
    """(n + 1, 2): what a unit of velocity added `j` steps before the last step makes of (a, v)."""
    found: Array = powers(spec, n) @ np.array([-spec.lr, 1.0])
    return found


def shrinkage(spec: HeadSpec, steps: int) -> Array:
    """(steps + 1,): the share of the initial weights left after each step; its gradient is 0."""
    shares, velocity = [1.0], 0.0
    for t in range(steps):
        pull = spec.weight_decay * shares[-1]
        velocity = pull if t == 0 else spec.momentum * velocity + (1 - spec.dampening) * pull
        shares.append(shares[-1] - spec.lr * velocity)
    return np.array(shares)


def steps(spec: HeadSpec, n: int) -> NDArray[np.int64]:
    """(epochs * n,): the step that uses each place in the orders of all epochs."""
    in_epoch = np.arange(n) // spec.batch_size
    before = np.arange(spec.epochs) * (in_epoch[-1] + 1)
    found: NDArray[np.int64] = np.add.outer(before, in_epoch).ravel()
    return found


def gains(spec: HeadSpec, n: int) -> Array:
    """(epochs * n,): what the gradient of one place's loss adds to the velocity.

    The loss is a mean over the batch, and the last batch of an epoch may be smaller.
    """
    used = steps(spec, n)
    size = np.bincount(used)[used]
    return np.where(used == 0, 1.0, 1 - spec.dampening) / size
