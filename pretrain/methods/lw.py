"""LW: block after block from the bottom, keep and rescale what is below, re-draw what is above.

"The Impact of Reinitialization on Generalization in Convolutional Neural Networks", Algorithm 1;
a third party's version in hlml/fortuitous_forgetting, train_KE_cls_LW.py (methods.md A6).

    before training:     s_l = |W_l| for every layer l
    start of the round (k, n), k = 1..K, n = 1..N:
        rescale          W_l <- (s_l / |W_l|) W_l for the layers l of blocks 1..k
        normalise        mu, sigma of the output of block k on one training batch; from now on
                         z -> (z - mu) / sigma after block k, fixed; those below k stay
        re-draw          everything above block k: weights, biases, norm layers, head
    then all parameters train.

In the first round there is nothing to rescale or to re-draw. The normalisers stay in the network:
in checkpoints, at evaluation and in the exported run (fsbench/backbones/normalizers.py).

| setting     | paper                   | fortuitous_forgetting        | here                      |
|-------------|-------------------------|------------------------------|---------------------------|
| repeats     | N = 1 (Table 2), 3 (1)  | -                            | 1                         |
| rounds      | K N                     | G; keeps g (K + 1) // G      | K N; or `generations`     |
| order       | Table 5: 1, 1, 2, 2, 2  | -                            | Algorithm 1's; or a list  |
| statistics  | scalars                 | per channel                  | scalar                    |
| rescaled    | weights of layers       | all tensors, zeroing some    | weights; `all` parameters |
| head_block  | the toy net counts it   | -                            | false                     |
| freeze_kept | false; appendix E: true | -                            | false                     |
| norm layers | layer norm              | gamma, beta; no statistics   | gamma, beta, statistics   |
| epsilon     | not said                | none                         | 1e-6, added to sigma      |

`rescale`, `normalize`, `reinit` switched off are the ablations of appendix E. The batch is the
first of the round; batch norm uses its statistics and keeps its own. `generations` keeps at least
one block after the first round. `order` says for each round how many blocks it keeps (Table 5:
methods.md F3, without normalisers). `all` leaves tensors alone that start at zero, where that code
zeroes trained ones. No figure on TinyImageNet was published.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fsbench.backbones import normalizers
from fsbench.backbones.architectures._roles import below
from fsbench.errors import UsageError
from pretrain import surgery
from pretrain.blueprint import blueprint
from pretrain.events import need_rounds
from pretrain.method import Group, Method, Neutral, Rank
from pretrain.methods.rescale import restore_sizes
from pretrain.observe import batch_statistics, outputs
from pretrain.validation import evaluating

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pretrain.context import Context
    from pretrain.recipe import Recipe

EPSILON = 1e-6
Statistics = Literal["scalar", "per_channel"]
Rescaled = Literal["weights", "all"]


def schedule(rounds: int, blocks: int, repeats: int, generations: bool) -> tuple[int, ...]:
    """Blocks that every round keeps; 0 is a plain round. repeats are for Algorithm 1 only."""
    if not generations:
        return tuple(r // repeats + 1 for r in range(rounds))
    return (0, *(max(1, r * (blocks + 1) // rounds) for r in range(1, rounds)))


def mean_and_std(output: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Mean and std + EPSILON of an output (B, C, ...), in float64 without correction.

    Over all elements for the shape (), else over all but the channels.
    """
    z = output.detach().double()
    dims = tuple(d for d in range(z.ndim) if d != 1 or not shape)
    mean, std = z.mean(dims), z.std(dims, correction=0) + EPSILON
    return mean.view(shape).to(output.dtype), std.view(shape).to(output.dtype)


class Lw(Method):
    """repeats: N; generations: spread the blocks over the plan's rounds; order: blocks that every
    round keeps, instead of both; head_block: the head is one more block, rescaled in the last N
    rounds and never normalised; the rest: see the file."""

    repeats: int = Field(1, ge=1)
    generations: bool = False
    order: tuple[int, ...] | None = None
    statistics: Statistics = "scalar"
    rescaled: Rescaled = "weights"
    head_block: bool = False
    rescale: bool = True
    normalize: bool = True
    reinit: bool = True
    freeze_kept: bool = False

    SOURCE: ClassVar = "reinitialization study, Algorithm 1 and appendix E"
    RANK: ClassVar = Rank.ROUND
    NEUTRAL: ClassVar[Neutral] = {"rescale": False, "normalize": False, "reinit": False}
    PILOT: ClassVar = {"lw.generations": True}
    TOY: ClassVar = {"lw.generations": True}

    def check(self, recipe: Recipe) -> None:
        if self.generations or not self.normalize:
            need_rounds(self, recipe)
        self._check_one_order()
        if self.order is not None:
            self._check_order(self.order, recipe)
        elif not self.generations:
            self._check_rounds(recipe)
        if self.freeze_kept and self.head_block:
            raise UsageError(
                "lw.freeze_kept with lw.head_block would train nothing once the head is kept",
                fix="leave one of them out",
            )

    def _check_one_order(self) -> None:
        """Only one setting may say which blocks a round keeps."""
        given = {"generations": self.generations, "order": self.order is not None}
        given |= {"repeats": self.repeats > 1}
        names = [f"lw.{name}" for name, there in given.items() if there]
        if len(names) > 1:
            raise UsageError(
                f"{' and '.join(names)} each say which blocks a round keeps",
                fix="leave all but one of them out",
            )

    def _check_order(self, order: tuple[int, ...], recipe: Recipe) -> None:
        """One number of blocks, 1 or more, for every round of the plan, never fewer than before."""
        rounds, blocks = recipe.plan.total_rounds, self.blocks(recipe)
        steady = all(1 <= k <= blocks for k in order) and list(order) == sorted(order)
        if len(order) != rounds or not steady:
            raise UsageError(
                f"lw.order={list(order)} does not fit {rounds} rounds over the {blocks} blocks of"
                f" {recipe.architecture}",
                fix=f"give {rounds} numbers from 1 to {blocks}, none smaller than the one before",
            )

    def _check_rounds(self, recipe: Recipe) -> None:
        """Algorithm 1 takes N rounds a block."""
        rounds, blocks = recipe.plan.total_rounds, self.blocks(recipe)
        if rounds != blocks * self.repeats:
            raise UsageError(
                f"lw goes through {blocks} blocks of {recipe.architecture}, {self.repeats} rounds"
                f" each; the plan has {rounds} rounds",
                fix=f"use --set plan.rounds={blocks * self.repeats}, or --set lw.generations=true"
                " to spread the blocks over the plan's rounds",
            )

    def blocks(self, recipe: Recipe) -> int:
        """K: blocks that are gone through."""
        return len(blueprint(recipe)[1].blocks) + self.head_block

    def kept(self, ctx: Context) -> int:
        """Blocks that the current round keeps."""
        return self._schedule(ctx)[ctx.clock.round]

    def _schedule(self, ctx: Context) -> tuple[int, ...]:
        if self.order is not None:
            return self.order
        rounds = ctx.recipe.plan.total_rounds
        return schedule(rounds, self.blocks(ctx.recipe), self.repeats, self.generations)

    def setup(self, ctx: Context) -> None:
        names = self._rescaled_names(ctx)
        ctx.memory["norms"] = {n: surgery.norm(surgery.get_weight(ctx.model, n)) for n in names}
        if self.normalize:
            depth = len(ctx.roles.blocks)
            ends = {ctx.roles.blocks[k - 1][-1]: () for k in self._schedule(ctx) if 0 < k <= depth}
            normalizers.insert(ctx.model, self._shapes(ctx, ends))

    def _rescaled_names(self, ctx: Context) -> list[str]:
        if self.rescaled == "weights":
            return [f"{layer}.weight" for layer in ctx.roles.layers]
        named = surgery.plain_names(ctx.architecture, ctx.classes, ctx.recipe.width)
        return [n for n in named if surgery.get_weight(ctx.model, n).requires_grad]

    def _shapes(self, ctx: Context, ends: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Shapes of mean and std after these modules."""
        if self.statistics == "scalar":
            return dict.fromkeys(ends, ())
        with evaluating(ctx.model):
            found = outputs(ctx.model, ends, ctx.loader.batch(ctx.clock).images[:2])
        for name, z in found.items():
            if z.ndim == 3 or (z.ndim == 4 and z.shape[2] != z.shape[3]):
                raise UsageError(
                    f"lw finds no channels after {name} of {ctx.recipe.architecture}: tokens of"
                    f" shape {tuple(z.shape[1:])}",
                    fix="use --set lw.statistics=scalar",
                )
        return {name: (z.shape[1], *[1] * (z.ndim - 2)) for name, z in found.items()}

    def round_start(self, ctx: Context) -> None:
        k, first = self.kept(ctx), ctx.clock.round == 0
        if k == 0:
            return
        kept = [module for block in ctx.roles.blocks[:k] for module in block]
        whole = k > len(ctx.roles.blocks)
        if self.rescale and not first:
            norms: dict[str, float] = ctx.memory["norms"]
            chosen = {n: s for n, s in norms.items() if whole or below(n, kept)}
            restore_sizes(ctx, chosen, f"blocks 1..{k} at their initial norm")
        if self.normalize and not whole:
            self._normalize(ctx, k)
        if self.reinit and not first and not whole:
            names = surgery.plain_names(ctx.architecture, ctx.classes, ctx.recipe.width)
            ctx.redraw([n for n in names if not below(n, kept)], f"above block {k}")

    def _normalize(self, ctx: Context, k: int) -> None:
        """Set the normaliser after block k from the first batch of the round."""
        end = ctx.roles.blocks[k - 1][-1]
        mean, std = normalizers.tensors(end)
        with ctx.stream("statistics"), batch_statistics(ctx.model):
            found = outputs(ctx.model, [end], ctx.loader.batch(ctx.clock).images)
        shape = tuple(surgery.get_weight(ctx.model, mean).shape)
        values = dict(zip((mean, std), mean_and_std(found[end], shape), strict=True))
        ctx.rewrite(values, f"normaliser after block {k}")

    def param_groups(self, ctx: Context, groups: list[Group]) -> list[Group]:
        if not self.freeze_kept or ctx.clock.round == 0:
            return groups
        kept = [module for block in ctx.roles.blocks[: self.kept(ctx)] for module in block]
        return [replace(g, names=tuple(n for n in g.names if not below(n, kept))) for g in groups]
