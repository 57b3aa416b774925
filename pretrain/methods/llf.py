"""Later-layer forgetting: at every round start, redraw the later kernels and the head.

Fortuitous Forgetting in Connectionist Networks. H. Zhou, A. Vani, H. Larochelle, A. Courville,
ICLR 2022.
Paper: https://arxiv.org/abs/2202.00155
Code:  https://github.com/hlml/fortuitous_forgetting
Here as the comparator of SEAL (https://arxiv.org/abs/2304.04858, section 4.1) and its code.

    round start r > 0:  W_l <- fresh draw, for every convolution l from `threshold` on (those of
                        downsampling branches included), every hidden linear layer there, the head

| setting   | SEAL paper       | SEAL code         | LLF code           | here             |
|-----------|------------------|-------------------|--------------------|------------------|
| threshold | 23rd convolution | layer3 (the same) | layer4, small data | auto: layer3     |
| redraw    | not stated       | kaiming-uniform   | kaiming-uniform    | initial law; as  |
|           |                  |                   |                    | coded in paper/  |

Untouched: norm layers (scale, shift, statistics), all biases including the head's, early layers.

Differences: both codes draw from kaiming-uniform(a=sqrt 5), with a standard deviation sqrt 6 times
smaller than that of the initial weights. `redraw=kaiming_uniform_sqrt5` does the same; it is set in
`paper/llf`, because that code made the printed figure, and nowhere else.
`auto` carries layer3 over to networks other than ResNet-50. Section 2 of SEAL speaks of the layers
before the threshold; its section 4.1, Figure 1 and code, followed here, of those after it.
"""

from collections.abc import Mapping
from typing import ClassVar

from pretrain.method import RoundMethod
from pretrain.recipes.recipe import Recipe, seal_rows
from pretrain.training.context import Context
from pretrain.weights import surgery


def redraw_late_layers(ctx: Context, threshold: str) -> None:
    """Redraw the kernels from `threshold` on, the head's included."""
    name = surgery.find_threshold(ctx.recipe, threshold)
    _, late = surgery.split_parameters(ctx.model, name)
    ctx.redraw(surgery.kernel_names(ctx.roles.layers, late), f"later layers from {name}")


class LLF(RoundMethod):
    """Settings of LLF; threshold: first module that is redrawn, `auto`, or `end`: none."""

    threshold: str = surgery.AUTO

    SOURCE: ClassVar = "LLF (Zhou et al. 2022); SEAL, section 4.1; code hlml/fortuitous_forgetting"
    NEUTRAL: ClassVar = {"threshold": surgery.END}
    PAPER: ClassVar = seal_rows("llf", 0.5612, 0.5692, redraws=True)

    def check(self, recipe: Recipe) -> None:
        super().check(recipe)
        surgery.find_threshold(recipe, self.threshold)

    def resolved(self, recipe: Recipe) -> Mapping[str, object]:
        return {"threshold": surgery.find_threshold(recipe, self.threshold)}

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round > 0:
            redraw_late_layers(ctx, self.threshold)
