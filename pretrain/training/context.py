"""The context of a run: what the hooks of methods read, and how they change weights.

It holds the model, the clock, the random streams and the memory of every method, builds the
optimizer and logs every change of weights that is no optimizer step.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import Architecture
from fsbench.core import seeding
from fsbench.core.progress import SILENT, Reporter
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import MethodSettings, Recipe
from pretrain.training.batches import BatchLoader
from pretrain.weights import surgery

OptimizerState = dict[str, dict[str, Tensor]]
"""Parameter name -> buffer name (momentum_buffer; step, exp_avg, exp_avg_sq) -> tensor."""


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters (by name) that share a learning rate and a decay; others are not trained.

    lr_scale and decay multiply the recipe's learning rate and weight decay. decay_on: `effective`
    means that a reparametrization decays the effective weight and the optimizer does not.
    """

    names: tuple[str, ...]
    lr_scale: float = 1.0
    decay: float = 1.0
    decay_on: Literal["trained", "effective"] = "trained"


def build_optimizer(
    recipe: Recipe,
    parameters: Mapping[str, nn.Parameter],
    groups: Sequence[ParameterGroup],
    carried: OptimizerState,
) -> torch.optim.Optimizer:
    """Return the recipe's optimizer over the groups, starting from the carried buffers."""
    options = [
        {
            "params": [parameters[name] for name in group.names],
            "lr": recipe.lr * group.lr_scale,
            "weight_decay": recipe.weight_decay * group.decay * (group.decay_on == "trained"),
            "effective_decay": recipe.weight_decay * group.decay * (group.decay_on == "effective"),
            "lr_scale": group.lr_scale,
        }
        for group in groups
        if group.names
    ]
    optimizer: torch.optim.Optimizer
    if recipe.optimizer == "adam":
        optimizer = torch.optim.Adam(options, lr=recipe.lr)
    elif recipe.optimizer == "adamw":
        optimizer = torch.optim.AdamW(options, lr=recipe.lr)
    else:
        # foreach gives the bits of the plain loop; fused does not where layouts differ (torch 2.15)
        optimizer = torch.optim.SGD(options, lr=recipe.lr, momentum=recipe.momentum, foreach=True)
    trained = {name for group in groups for name in group.names}
    for name in trained & carried.keys():
        optimizer.state[parameters[name]] = dict(carried[name])
    return optimizer


Memory = dict[str, Any]
"""State of one method: tensors, numbers, strings; saved with every checkpoint."""
Drop = Literal["none", "touched", "all"]


class Context:
    """Argument of every hook; `memory` and `stream` are those of the method whose hook runs.

    model: the network (plain or parametrized). forward: the callable for logits, compiled or
    wrapped. roles: layers, blocks and head by name. parameters: trainable tensors by name. loader:
    batches of the source. report: for warnings. resumed: weights and memory will come from a
    checkpoint.
    """

    def __init__(
        self,
        recipe: Recipe,
        architecture: Architecture,
        model: nn.Module,
        loader: BatchLoader,
        clock: TrainingClock,
        device: torch.device,
        log_rewrite: Callable[[dict[str, Any]], None],
    ) -> None:
        self.recipe, self.architecture, self.model = recipe, architecture, model
        self.loader, self.clock, self.device = loader, clock, device
        self.log_rewrite = log_rewrite
        self.report: Reporter = SILENT
        self.roles = architecture.roles(model)
        self.classes = loader.classes
        self.forward: Callable[[Tensor], Tensor] = model
        self._optimizer: torch.optim.Optimizer | None = None
        self.carried: OptimizerState = {}
        self.parameters: dict[str, nn.Parameter] = {}
        self.memories: dict[str, Memory] = {method.name: {} for method in recipe.methods}
        self.acting = ""
        self.touched: set[str] = set()
        self.resumed = False
        self._methods: dict[str, list[MethodSettings]] = defaultdict(list)
        for method in recipe.methods:
            for hook in method.hooks:
                self._methods[hook].append(method)

    def call(self, hook: str, *args: object) -> list[Any]:
        """Run one hook of every method that has it; return their results."""
        return [self.call_method(method, hook, *args) for method in self._methods[hook]]

    def call_method(self, method: MethodSettings, hook: str, *args: object) -> Any:
        """Run a hook of one method; it then acts under its own name."""
        self.acting = method.name
        return getattr(method, hook)(self, *args)

    @property
    def memory(self) -> Memory:
        return self.memories[self.acting]

    def stream(self, *names: seeding.Name) -> AbstractContextManager[None]:
        """Run torch's generators on the acting method's stream for this position of the run."""
        return seeding.stream(*self._stream_names(names))

    def generator(self, *names: seeding.Name) -> torch.Generator:
        """Return a CPU generator on the acting method's stream for this position of the run."""
        return seeding.torch_generator(*self._stream_names(names))

    def _stream_names(self, names: tuple[seeding.Name, ...]) -> tuple[seeding.Name, ...]:
        return (*self.recipe.stream("method"), self.acting, *self.clock.names, *names)

    def rewrite(self, weights: Mapping[str, Tensor], note: str) -> None:
        """Make these the effective tensors and log it; events change weights only through this."""
        old = {name: surgery.get_weight(self.model, name).detach().clone() for name in weights}
        clamped_before = surgery.total_clamped(self.model, weights)
        for name, value in weights.items():
            surgery.set_weight(self.model, name, value.to(self.device))
        self.touched |= {t for name in weights for t in surgery.trained_names(self.model, name)}
        new = [surgery.get_weight(self.model, name).detach() for name in weights]
        acting = self.acting
        for method in self._methods["rewritten"]:
            if method.name != acting:
                self.call_method(method, "rewritten", tuple(weights))
        self.acting = acting
        clamped = surgery.total_clamped(self.model, weights) - clamped_before
        suffix = f"; {clamped} elements clamped to the range" if clamped else ""
        self.log(tuple(weights), surgery.fraction_changed(old.values(), new), note + suffix)

    def log(self, names: tuple[str, ...], fraction_changed: float, note: str) -> None:
        """Write a line of rewrites.jsonl: a change of weights that no optimizer step made."""
        self.log_rewrite(
            self.clock.position()
            | {
                "method": self.acting,
                "tensors": names,
                "fraction_changed": fraction_changed,
                "optimizer_state": "kept" if self.recipe.opt_reset == "none" else "reset",
                "note": note,
            }
        )

    def plain_names(self, trained: bool = False) -> tuple[str, ...]:
        """Return the names of all tensors, or parameters, of the plain network in their order."""
        with torch.device("meta"):
            plain = self.architecture.build(self.classes, self.recipe.width)
        return tuple(dict(plain.named_parameters()) if trained else plain.state_dict())

    def redraw(self, names: Iterable[str], note: str) -> None:
        """Rewrite tensors with fresh draws from the method's stream (recipe field `redraw`)."""
        names = tuple(names)
        if names:
            self.rewrite(self.fresh(names), note)

    def fresh(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Return fresh draws of these tensors from the method's stream, on the CPU.

        Recipe field `redraw`: `init` is the initial distribution of each tensor; that of the
        official codes is for kernels only.
        """
        with self.stream("redraw"):
            drawn = dict(self.architecture.build(self.classes, self.recipe.width).state_dict())
            if self.recipe.redraw == "kaiming_uniform_sqrt5":
                for name, shape in [(n, drawn[n].shape) for n in names if drawn[n].ndim > 1]:
                    drawn[name] = nn.init.kaiming_uniform_(torch.empty(shape), a=5**0.5)
        for method in self.recipe.methods:
            for name, scale in method.init_scales(self.memories[method.name]).items():
                drawn[name] = drawn[name] * scale
        return {name: drawn[name] for name in names}

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        if self._optimizer is None:
            raise RuntimeError("there is no optimizer before the first round")
        return self._optimizer

    def optimizer_state(self) -> OptimizerState:
        """Return the optimizer's buffers by parameter name, or those that it will start with."""
        if self._optimizer is None:
            return self.carried
        buffers_by_name: OptimizerState = {}
        for name, parameter in self.parameters.items():
            buffers = self._optimizer.state.get(parameter, {})
            tensors = {key: value for key, value in buffers.items() if isinstance(value, Tensor)}
            if tensors:
                buffers_by_name[name] = tensors
        return buffers_by_name

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate of every group to lr times the group's scale."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr * group["lr_scale"]

    def rebuild_optimizer(self, drop: Drop) -> None:
        """Build a new optimizer over the groups that the methods return now.

        drop: whose buffers are not carried over; `touched` means tensors rewritten since the last
        time. The learning rate is set before the next step.
        """
        buffers = self.optimizer_state()
        dropped = {"none": set(), "touched": self.touched, "all": set(buffers)}[drop]
        carried = {name: tensors for name, tensors in buffers.items() if name not in dropped}
        self.parameters = dict(self.model.named_parameters())
        groups = [ParameterGroup(tuple(self.parameters))]
        for method in self._methods["param_groups"]:
            groups = self.call_method(method, "param_groups", groups)
        self._optimizer = build_optimizer(self.recipe, self.parameters, groups, carried)
        self.carried = {}
        if drop != "none":
            self.touched = set()
