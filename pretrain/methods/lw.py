"""LW: block by block from the bottom, rescale the lower blocks and redraw the rest.

The Impact of Reinitialization on Generalization in Convolutional Neural Networks.
I. Alabdulmohsin, H. Maennel, D. Keysers, 2021.
Paper: https://arxiv.org/abs/2109.00267, Algorithm 1; no public code
A third party's version: https://github.com/hlml/fortuitous_forgetting, train_KE_cls_LW.py ("FF").

    before training:     s_l = |W_l| for every layer l                       (Frobenius norm)
    start of the round (k, n), k = 1..K, n = 1..N:
        rescale          W_l <- (s_l / |W_l|) W_l for the layers l of blocks 1..k
        normalise        mu, sigma of the output of block k on one training batch; from now on
                         z -> (z - mu) / sigma after block k, fixed; earlier ones stay
        redraw           everything above block k: weights, biases, norm layers, head
    then all parameters train.

In the first round there is nothing to rescale or to redraw. The normalisers stay in the network:
in checkpoints, at evaluation and in the exported run (fsbench/backbones/architectures/__init__.py).

| setting     | paper                   | FF                           | here                      |
|-------------|-------------------------|------------------------------|---------------------------|
| repeats     | N = 1 (Table 2), 3 (1)  | -                            | 1                         |
| rounds      | K N                     | G; keeps g (K + 1) // G      | K N; or `generations`     |
| order       | Table 5: 1, 1, 2, 2, 2  | -                            | Algorithm 1's; or a list  |
| statistics  | scalars                 | per channel                  | scalar                    |
| rescaled    | weights of layers       | all tensors, zeroing some    | weights; `all` parameters |
| head_block  | the toy net counts it   | -                            | false                     |
| freeze_kept | false; appendix E: true | -                            | false                     |
| norm layers | layer norm              | gamma, beta; no statistics   | gamma, beta, statistics   |
| epsilon     | not stated              | none                         | 1e-6, added to sigma      |

`rescale=false`, `normalize=false` and `reinit=false` are the ablations of appendix E.

Differences and choices where the paper is silent: the batch is the first of the round, and batch
norm uses its statistics without updating the running ones; `generations` keeps at least one block
after the first round; `order` gives the number of kept blocks for each round (Table 5, without
normalisers); `rescaled=all` skips tensors that start at zero, where FF sets trained ones to zero.
The paper reports no accuracy on TinyImageNet.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from fsbench.backbones import architectures
from fsbench.backbones.architectures import below
from fsbench.core.errors import UsageError
from pretrain.method import Method, require_rounds
from pretrain.methods.rescale import measure_size, restore_sizes
from pretrain.recipes.recipe import ActingOrder, Neutral, Recipe
from pretrain.training.context import Context, ParameterGroup
from pretrain.training.validation import eval_mode, read_outputs, use_batch_statistics
from pretrain.weights import surgery

EPSILON = 1e-6


def build_block_schedule(
    rounds: int, blocks: int, repeats: int, generations: bool
) -> tuple[int, ...]:
    """Return the number of kept blocks per round, 0 in a plain one; repeats: rounds per block."""
    if not generations:
        return tuple(r // repeats + 1 for r in range(rounds))
    return (0, *(max(1, r * (blocks + 1) // rounds) for r in range(1, rounds)))


def compute_mean_and_std(output: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return mean and std + EPSILON of an output (B, C, ...), in float64 without correction.

    shape: () for statistics over all elements, else of one number per channel.
    """
    z = output.detach().double()
    dims = tuple(d for d in range(z.ndim) if d != 1 or not shape)
    mean, std = z.mean(dims), z.std(dims, correction=0) + EPSILON
    return mean.view(shape).to(output.dtype), std.view(shape).to(output.dtype)


class Lw(Method):
    """Settings of LW.

    repeats: N; generations: spread the blocks over the plan's rounds; order: number of kept blocks
    for each round, instead of both; head_block: the head is one more block, rescaled in the last N
    rounds and never normalised; the others: see the table.
    """

    repeats: int = Field(1, ge=1)
    generations: bool = False
    order: tuple[int, ...] | None = None
    statistics: Literal["scalar", "per_channel"] = "scalar"
    rescaled: Literal["weights", "all"] = "weights"
    head_block: bool = False
    rescale: bool = True
    normalize: bool = True
    reinit: bool = True
    freeze_kept: bool = False

    SOURCE: ClassVar = "reinitialization study, Algorithm 1 and appendix E"
    RANK: ClassVar = ActingOrder.ROUND
    NEUTRAL: ClassVar[Neutral] = {"rescale": False, "normalize": False, "reinit": False}
    EVERY: ClassVar = {"lw.generations": True}

    def check(self, recipe: Recipe) -> None:
        if self.generations or not self.normalize:
            require_rounds(self, recipe)
        if self.freeze_kept and self.head_block:
            raise UsageError(
                "lw.freeze_kept with lw.head_block would train nothing once the head is kept",
                fix="leave one of them out",
            )
        is_set = {"generations": self.generations, "order": self.order is not None}
        is_set |= {"repeats": self.repeats > 1}
        names = [f"lw.{name}" for name, used in is_set.items() if used]
        if len(names) > 1:
            raise UsageError(
                f"{' and '.join(names)} each define which blocks a round keeps",
                fix="leave all but one of them out",
            )
        rounds, blocks = recipe.plan.total_rounds, self.blocks(recipe)
        if self.order is not None:
            self._check_order(self.order, rounds, blocks, recipe.architecture)
        elif not self.generations and rounds != blocks * self.repeats:
            raise UsageError(
                f"lw goes through {blocks} blocks of {recipe.architecture}, {self.repeats} rounds"
                f" each; the plan has {rounds} rounds",
                fix=f"use --set plan.rounds={blocks * self.repeats}, or --set lw.generations=true"
                " to spread the blocks over the plan's rounds",
            )

    @staticmethod
    def _check_order(order: tuple[int, ...], rounds: int, blocks: int, network: str) -> None:
        """Raise UsageError unless every round has a number of blocks, 1 or more, never falling."""
        steady = all(1 <= k <= blocks for k in order) and list(order) == sorted(order)
        if len(order) != rounds or not steady:
            raise UsageError(
                f"lw.order={list(order)} does not fit {rounds} rounds over the {blocks} blocks of"
                f" {network}",
                fix=f"give {rounds} numbers from 1 to {blocks}, none smaller than the one before",
            )

    def blocks(self, recipe: Recipe) -> int:
        """Return K, the number of blocks."""
        return len(surgery.build_on_meta(recipe)[1].blocks) + self.head_block

    def kept_blocks(self, ctx: Context) -> int:
        return self._schedule(ctx)[ctx.clock.round]

    def _schedule(self, ctx: Context) -> tuple[int, ...]:
        if self.order is not None:
            return self.order
        rounds = ctx.recipe.plan.total_rounds
        return build_block_schedule(rounds, self.blocks(ctx.recipe), self.repeats, self.generations)

    def setup(self, ctx: Context) -> None:
        names = self._rescaled_names(ctx)
        ctx.memory["norms"] = {n: measure_size(surgery.get_weight(ctx.model, n)) for n in names}
        if self.normalize:
            depth = len(ctx.roles.blocks)
            ends = {ctx.roles.blocks[k - 1][-1]: () for k in self._schedule(ctx) if 0 < k <= depth}
            architectures.insert_normalizers(ctx.model, self._shapes(ctx, ends))

    def _rescaled_names(self, ctx: Context) -> list[str]:
        if self.rescaled == "weights":
            return [f"{layer}.weight" for layer in ctx.roles.layers]
        return list(ctx.plain_names(trained=True))

    def _shapes(self, ctx: Context, ends: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of mean and std after these modules."""
        if self.statistics == "scalar":
            return dict.fromkeys(ends, ())
        with eval_mode(ctx.model):
            by_name = read_outputs(ctx.model, ends, ctx.loader.batch(ctx.clock).images[:2])
        for name, z in by_name.items():
            if z.ndim == 3 or (z.ndim == 4 and z.shape[2] != z.shape[3]):
                raise UsageError(
                    f"lw finds no channels after {name} of {ctx.recipe.architecture}: tokens of"
                    f" shape {tuple(z.shape[1:])}",
                    fix="use --set lw.statistics=scalar",
                )
        return {name: (z.shape[1], *[1] * (z.ndim - 2)) for name, z in by_name.items()}

    def round_start(self, ctx: Context) -> None:
        k, first = self.kept_blocks(ctx), ctx.clock.round == 0
        if k == 0:
            return
        modules = [module for block in ctx.roles.blocks[:k] for module in block]
        whole = k > len(ctx.roles.blocks)
        if self.rescale and not first:
            norms: dict[str, float] = ctx.memory["norms"]
            sizes = {n: s for n, s in norms.items() if whole or below(n, modules)}
            restore_sizes(ctx, sizes, f"blocks 1..{k} at their initial norm")
        if self.normalize and not whole:
            self._normalize(ctx, k)
        if self.reinit and not first and not whole:
            names = ctx.plain_names()
            ctx.redraw([n for n in names if not below(n, modules)], f"above block {k}")

    def _normalize(self, ctx: Context, k: int) -> None:
        """Set the normaliser after block k from the first batch of the round."""
        end = ctx.roles.blocks[k - 1][-1]
        mean, std = architectures.normalizer_tensors(end)
        with ctx.stream("statistics"), use_batch_statistics(ctx.model):
            by_name = read_outputs(ctx.model, [end], ctx.loader.batch(ctx.clock).images)
        shape = tuple(surgery.get_weight(ctx.model, mean).shape)
        values = dict(zip((mean, std), compute_mean_and_std(by_name[end], shape), strict=True))
        ctx.rewrite(values, f"normaliser after block {k}")

    def param_groups(self, ctx: Context, groups: list[ParameterGroup]) -> list[ParameterGroup]:
        if not self.freeze_kept or ctx.clock.round == 0:
            return groups
        blocks = ctx.roles.blocks[: self.kept_blocks(ctx)]
        modules = [module for block in blocks for module in block]
        return [
            replace(g, names=tuple(n for n in g.names if not below(n, modules))) for g in groups
        ]
