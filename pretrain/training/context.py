"""What a hook sees and may do: the run's model, clock, streams, memory, and logged rewrites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor, nn

from fsbench.core import seeding
from fsbench.core.specs import Frozen
from pretrain.method import HOOKS, Method, ParameterGroup, hooks_of
from pretrain.training import optimizer as optimizers
from pretrain.weights import surgery

if TYPE_CHECKING:
    import torch

    from fsbench.backbones.architectures import Architecture
    from pretrain.recipes.plan import TrainingClock
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.batches import BatchLoader

Memory = dict[str, Any]
"""State of one method: tensors, numbers, strings; saved with every checkpoint."""
Drop = Literal["none", "touched", "all"]


class Rewrite(Frozen):
    """A logged change of weights that no optimizer step made; one line of rewrites.jsonl."""

    step: int
    stage: int
    round: int
    epoch: int
    method: str
    tensors: tuple[str, ...]
    fraction_changed: float
    optimizer_state: Literal["kept", "reset"]
    note: str


class Context:
    """Handed to every hook. `memory` and `stream` are those of the method whose hook runs.

    model: the network (plain or parametrized); forward: what to call for logits, compiled or
    wrapped; roles: layers, blocks and head by name; parameters: trainable tensors by name;
    loader: batches of the source; resumed: weights and memory will come from a checkpoint.
    """

    def __init__(
        self,
        recipe: Recipe,
        architecture: Architecture,
        model: nn.Module,
        loader: BatchLoader,
        clock: TrainingClock,
        device: torch.device,
        log_rewrite: Callable[[Rewrite], None],
    ) -> None:
        self.recipe, self.architecture, self.model, self.loader = (
            recipe,
            architecture,
            model,
            loader,
        )
        self.clock, self.device, self.log_rewrite = clock, device, log_rewrite
        self.roles = architecture.roles(model)
        self.classes = loader.classes
        self.forward: Callable[[Tensor], Tensor] = model
        self._optimizer: torch.optim.Optimizer | None = None
        self.carried: optimizers.OptimizerState = {}
        self.parameters: dict[str, nn.Parameter] = {}
        self.memories: dict[str, Memory] = {method.name: {} for method in recipe.methods}
        self.acting = ""
        self.touched: set[str] = set()
        self.resumed = False
        self._hooks = {
            hook: [m for m in recipe.methods if hook in hooks_of(type(m))] for hook in HOOKS
        }

    def having(self, hook: str) -> list[Method]:
        """The recipe's methods that override the hook, in the order of their rank."""
        return self._hooks[hook]

    def call(self, hook: str, *args: object) -> list[Any]:
        """Run one hook of every method that has it; their answers."""
        answers = []
        for method in self._hooks[hook]:
            self.acting = method.name
            answers.append(getattr(method, hook)(self, *args))
        return answers

    def _tell_others(self, names: tuple[str, ...]) -> None:
        """Call `rewritten` of every method but the acting one."""
        acting = self.acting
        for method in self._hooks["rewritten"]:
            if method.name != acting:
                self.acting = method.name
                method.rewritten(self, names)
        self.acting = acting

    @property
    def memory(self) -> Memory:
        return self.memories[self.acting]

    def stream(self, *names: seeding.Name) -> AbstractContextManager[None]:
        """torch's generators run the acting method's own stream for this position of the run."""
        return seeding.stream(*self._stream_names(names))

    def generator(self, *names: seeding.Name) -> torch.Generator:
        """A CPU generator on the acting method's own stream for this position of the run."""
        return seeding.torch_generator(*self._stream_names(names))

    def _stream_names(self, names: tuple[seeding.Name, ...]) -> tuple[seeding.Name, ...]:
        return (*self.recipe.stream("method"), self.acting, *self.clock.names, *names)

    def rewrite(self, weights: Mapping[str, Tensor], note: str) -> None:
        """Make these the effective tensors and log it; the only way to rewrite at events."""
        old = {name: surgery.get_weight(self.model, name).detach().clone() for name in weights}
        clamped = surgery.total_clamped(self.model, weights)
        for name, value in weights.items():
            surgery.set_weight(self.model, name, value.to(self.device))
        self.touched |= {t for name in weights for t in surgery.trained_names(self.model, name)}
        now = [surgery.get_weight(self.model, name).detach() for name in weights]
        self._tell_others(tuple(weights))
        moved = surgery.total_clamped(self.model, weights) - clamped
        clamps = f"; {moved} elements clamped to the range" if moved else ""
        self.log(tuple(weights), surgery.fraction_changed(old.values(), now), note + clamps)

    def log(self, names: tuple[str, ...], fraction_changed: float, note: str) -> None:
        """A line of rewrites.jsonl by the acting method."""
        self.log_rewrite(
            Rewrite(
                step=self.clock.step,
                stage=self.clock.stage,
                round=self.clock.round,
                epoch=self.clock.epoch,
                method=self.acting,
                tensors=names,
                fraction_changed=fraction_changed,
                optimizer_state="kept" if self.recipe.opt_reset == "none" else "reset",
                note=note,
            )
        )

    def redraw(self, names: Iterable[str], note: str) -> None:
        """Rewrite tensors with fresh draws from the method's stream (recipe field `redraw`)."""
        names = tuple(names)
        if names:
            self.rewrite(self.fresh(names), note)

    def fresh(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Fresh draws of these tensors from the method's stream, on the CPU.

        Recipe field `redraw`: `init` is the initial law of each tensor; the official codes' law is
        for kernels only.
        """
        with self.stream("redraw"):
            drawn = surgery.draw_initial(self.architecture, self.classes, self.recipe.width)
            if self.recipe.redraw == "kaiming_uniform_sqrt5":
                drawn |= {
                    n: surgery.kaiming_uniform_sqrt5(drawn[n]) for n in names if drawn[n].ndim > 1
                }
        for method in self.recipe.methods:
            for name, scale in method.init_scales(self.memories[method.name]).items():
                drawn[name] = drawn[name] * scale
        return {name: drawn[name] for name in names}

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The optimizer of the round."""
        if self._optimizer is None:
            raise RuntimeError("there is no optimizer before the first round")
        return self._optimizer

    def optimizer_state(self) -> optimizers.OptimizerState:
        """The optimizer's buffers by parameter name; before it is built, those it will carry."""
        if self._optimizer is None:
            return self.carried
        return optimizers.optimizer_state(self._optimizer, self.parameters)

    def rebuild_optimizer(self, drop: Drop) -> None:
        """A new optimizer over the groups that the methods now want.

        drop: whose buffers are not carried over; `touched` means tensors rewritten since the last
        time. The learning rate is set before the next step.
        """
        held = self.optimizer_state()
        dropped = {"none": set(), "touched": self.touched, "all": set(held)}[drop]
        carried = {name: buffers for name, buffers in held.items() if name not in dropped}
        self.parameters = dict(self.model.named_parameters())
        groups = [ParameterGroup(tuple(self.parameters))]
        for method in self._hooks["param_groups"]:
            self.acting = method.name
            groups = method.param_groups(self, groups)
        self._optimizer = optimizers.build_optimizer(self.recipe, self.parameters, groups, carried)
        self.carried = {}
        if drop != "none":
            self.touched = set()
