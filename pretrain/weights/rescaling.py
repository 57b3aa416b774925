"""Rescaling of layers under which the network's function is only multiplied by a number.

"Soft Weight Rescaling", Theorem 1: with positively homogeneous activations a chain of layers scaled
by c_1, c_2, ... computes c_1 c_2 ... f if the bias of layer l is scaled by c_1 ... c_l. The output
of a normalization layer does not depend on the scale of its input, so the product restarts there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from pretrain.weights import surgery


@torch.no_grad()
def frobenius_norms(weights: Iterable[Tensor]) -> Tensor:
    """Return the Frobenius norms (L,) of weights."""
    return torch.stack(torch._foreach_norm([weight.detach() for weight in weights]))


def rescaling_coefficients(now: Tensor, target: Tensor, lam: Tensor) -> Tensor:
    """Return c (L,) with c |W| = lam target + (1 - lam) |W|; 1 where a norm or a target is zero.

    A target of zero (a zero-initialized residual scale) would switch its layer off for good.
    """
    c = lam * target / now + (1 - lam)
    return torch.where((now > 0) & (target > 0), c, torch.ones_like(c))


def bias_factors(c: Tensor, last_norm: int | None, literal: bool = False) -> Tensor:
    """Return the factors (L,) of biases: products of c from the last norm layer k on, c before it.

    last_norm: k, counted from 0; None for a network without norm layers. literal: Algorithm 1 as
    printed, which starts one layer early, so that the shift of norm k gets c_(k-1) c_k and
    proportionality fails.
    """
    if last_norm is None:
        return c.cumprod(0)
    tail = c[last_norm:].cumprod(0)
    early = c[last_norm - 1] if literal and last_norm > 0 else 1
    return torch.cat([c[:last_norm], tail * early])


def input_scales(c: Tensor, norm_layers: Sequence[int]) -> dict[int, Tensor]:
    """Return the factor by which the input of every norm layer of a chain has changed."""
    starts = [0, *norm_layers]
    return {at: c[start:at].prod() for start, at in zip(starts, norm_layers, strict=False)}


@torch.no_grad()
def multiply_tensors(
    model: nn.Module, factors: Mapping[str, Tensor], parameters: Mapping[str, Tensor] | None = None
) -> None:
    """Multiply effective tensors by a number each; a tensor with two names by the first only.

    parameters: plain parameters by name, if the caller has them; it saves walking the model.
    """
    plain: dict[int, tuple[Tensor, Tensor]] = {}
    for name, factor in factors.items():
        tensor = (parameters or {}).get(name)
        if tensor is None:
            tensor = surgery.get_weight(model, name)
            if surgery.trained_names(model, name) != (name,):
                surgery.set_weight(model, name, tensor * factor)
                continue
        plain.setdefault(id(tensor), (tensor, factor))
    if plain:
        tensors, numbers = zip(*plain.values(), strict=True)
        torch._foreach_mul_(tensors, numbers)


def has_tensor(model: nn.Module, name: str) -> bool:
    """Return whether the model has a tensor of this name."""
    owner, _, leaf = name.rpartition(".")
    return getattr(model.get_submodule(owner), leaf, None) is not None


def tied_names(model: nn.Module) -> tuple[str, ...]:
    """Return the names of parameters that have another name too."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return tuple(name for same in names.values() if len(same) > 1 for name in same)
