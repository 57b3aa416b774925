"""Find the weights of an architecture in a checkpoint, by their names and shapes.

Training programs nest and prefix the weights of a backbone in many ways. All mappings of a file and
all prefixes of its names are tried: a part fits if it has every weight of the architecture in its
shape. One part that fits is loaded, and what is left out is listed with the reason why the features
do not depend on it. Several or none are an error. Nothing is loaded with `strict=False`.
"""

import inspect
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import below
from fsbench.backbones.base import COUNTER
from fsbench.backbones.checkpoint import ROOT, FileReference, named_architecture
from fsbench.backbones.layouts import LONGEST, TABLES, Layout, drop_wrappers, recognise_library
from fsbench.core.errors import CheckpointError
from fsbench.core.progress import SILENT, Reporter

Tree = Mapping[str, Any]

MAX_DEPTH = 8
"""Limit of nested mappings; a mapping in a file may contain itself."""
CHILD = re.compile(r"(?:^|(?<=\.))\d{1,3}(?=\.)")
"""Number of a child of an nn.Sequential in a dotted name."""

HEADS: list[str] = TABLES["heads"]
REASONS, UNUSED = TABLES["reasons"], TABLES["unused"]
"""Kinds of names that may be left out, and encoders that their authors do not evaluate."""
TRAINING, CONSTANT = re.compile(TABLES["training"]), re.compile(TABLES["constant"])
FILTERS = ("checkpoint_filter_fn", "_filter_fn", "_filter_torchvision_pretrained")
"""Functions of timm's families that rename the files of other authors."""


class WeightMatch:
    """Comparison of a part of a file with the state dict of a network, `target`.

    part: its name as a reference takes it; prefix: of its names; renamed: how names were changed,
    if at all; state: the mapping that it is a part of, with its changed names; matched: name of the
    network -> tensor; missing: names of the network; misfit: descriptions; dropped: kind (of
    REASONS) -> names; unexpected: names of the file.
    """

    def __init__(
        self, part: str, prefix: str, renamed: str, state: Tree, target: Mapping[str, Tensor]
    ) -> None:
        self.part, self.prefix, self.renamed, self.state = part or ROOT, prefix, renamed, state
        values = {n: state[prefix + n] for n in target if prefix + n in state}
        self.missing = sorted(n for n in target if n not in values and not n.endswith(COUNTER))
        self.misfit = [m for n, v in values.items() if (m := describe_misfit(n, v, target[n]))]
        self.matched = {n: v for n, v in values.items() if isinstance(v, Tensor)}
        self.dropped: dict[str, list[str]] = {}
        self.unexpected: list[str] = []

    @property
    def fits(self) -> bool:
        """Return whether the part has every weight of the architecture in its shape."""
        return not (self.missing or self.misfit)

    def lines(self) -> list[str]:
        """Return the comparison as text, one line per kind that occurs."""
        part = f" in '{self.part}'" if self.part != ROOT else ""
        prefix = f", prefix '{self.prefix}' stripped" if self.prefix else ""
        renamed = f", {self.renamed}" if self.renamed else ""
        faults = {
            "missing": self.missing,
            "unexpected": self.unexpected,
            "wrong shape or type": self.misfit,
        }
        return [
            f"matched {len(self.matched)} tensors{part}{prefix}{renamed}",
            *(
                f"dropped {kind} {len(names)}: {join_names(names)} ({REASONS[kind]})"
                for kind, names in self.dropped.items()
                if names
            ),
            *(f"{kind} {len(n)}: {join_names(n)}" for kind, n in faults.items() if n),
        ]


def join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(name[:100] for name in names[:10]) + more


def load_weights(
    module: nn.Module,
    tree: Tree,
    file: FileReference,
    architecture: str,
    report: Reporter = SILENT,
    heads: Iterable[str] = HEADS,
    layouts: Sequence[Layout] = (),
) -> None:
    """Copy all weights of the head-free `module` from a checkpoint, and report the comparison.

    heads: modules beside the trunk that may be left out; layouts: those of the file. Raises
    CheckpointError naming the file, if anything is left over or missing, or if several parts fit.
    """
    match = Matcher(module, heads, layouts).match(tree, file, architecture)
    lines = match.lines()
    for line in lines:
        report.log(f"{file}: {line}")
    if not match.fits or match.unexpected:
        message = f"{file} does not fit {architecture}: {'; '.join(lines)}"
        raise CheckpointError(message, fix=suggest_fix(match, module, tree, file))
    state = module.state_dict()  # with the versions of its modules, which some insist on
    state.update(match.matched)
    module.load_state_dict(state, strict=True)


class Matcher:
    """Search for the weights of a head-free network; its arguments are those of `load_weights`."""

    def __init__(self, module: nn.Module, heads: Iterable[str], layouts: Sequence[Layout]) -> None:
        self.module, self.heads, self.layouts = module, heads, layouts
        self.target: Mapping[str, Tensor] = module.state_dict()

    def match(self, tree: Tree, file: FileReference, architecture: str) -> WeightMatch:
        """Return the only part of a checkpoint that fits, else the nearest one.

        Raises CheckpointError if no tensors are in the part that was named, or if several fit.
        """
        states = find_states(tree, file.part)
        if not states:
            part = f"part '{file.part}'" if file.part else "weights where they are looked for"
            raise CheckpointError(
                f"{file} has no {part}; it contains {join_names([str(name) for name in tree])}",
                fix="name one of its parts or none, or save the state dict of the network",
            )
        matches = [m for where, state in states.items() for m in self.match_state(where, state)]
        fits = {match.part: match for match in matches if match.fits}
        chosen = [part for part in fits if part.rpartition(".")[2] not in UNUSED] or [*fits]
        if file.part and ROOT in chosen:
            chosen = [ROOT]
        if len(chosen) > 1:
            parts = [file.inside(part) for part in chosen]
            raise CheckpointError(
                f"{file} holds several sets of weights that fit {architecture}: "
                f"{', '.join(part.part for part in parts)}",
                fix=f"choose one: {' or '.join(map(str, parts))}",
            )
        match = fits[chosen[0]] if chosen else max(matches, key=lambda match: len(match.matched))
        self.sort_left_over(match, fits)
        return match

    def match_state(self, where: str, state: dict[str, Any]) -> list[WeightMatch]:
        """Return the parts of one state dict that fit, under the first spelling that any fits.

        If none fits, return the nearest part of each spelling. A prefix of names is a part if all
        weights of the network follow it.
        """
        needed = {name for name in self.target if not name.endswith(COUNTER)}
        nearest: list[WeightMatch] = []
        tried: list[dict[str, str]] = []
        for renamed, names in self.spellings(state):
            spelled = {new: state[old] for old, new in names.items()}
            if names in tried or len(spelled) < len(state):  # two names became one
                continue
            tried.append(names)
            counts: Counter[str] = Counter()
            for name in spelled:
                starts = [0, *(dot.end() for dot in re.finditer(r"\.", name[:LONGEST]))]
                counts.update(name[:start] for start in starts if name[start:] in needed)
            full = [prefix for prefix, count in counts.items() if count == len(needed)]
            matches = []
            for prefix in full or [max(counts, key=counts.__getitem__, default="")]:
                part = ".".join(filter(None, (where, prefix_in_file(prefix, names))))
                matches.append(WeightMatch(part, prefix, renamed, spelled, self.target))
            if fits := [match for match in matches if match.fits]:
                return fits
            nearest += matches
            if 2 * len(state) < len(needed):  # of an optimizer, or of a head
                return nearest
        return [*self.convert_with_timm(where, state)] or nearest

    def spellings(self, state: Tree) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield (what was renamed, name of the file -> name of the network) of each spelling.

        Names as they are; without wrappers; as a published layout is renamed; children of an
        nn.Sequential by number, as in files of SimCLR and Barlow Twins.
        """
        modules = {part for name in self.target for part in name.split(".")}
        plain = {name: drop_wrappers(name, modules) for name in state}
        yield "", {name: name for name in state}
        yield "wrappers dropped from names", plain
        for layout in self.layouts:
            renames = layout.rename(plain.values(), self.target)
            yield f"names of {layout.name} renamed", {n: renames[p] for n, p in plain.items()}
        children = [name for name, child in self.module.named_children() if child.state_dict()]
        for prefix, order in number_children(plain.values(), children):
            listed = ", ".join(f"{number} = {child}" for number, child in order.items())
            names = {}
            for name, new in plain.items():
                start = new[: new.find(".", len(prefix)) + 1]
                child = order.get(start[len(prefix) : -1], "") if new.startswith(prefix) else ""
                names[name] = f"{prefix}{child}.{new.removeprefix(start)}" if child else new
            yield f"children of a Sequential named in order: {listed}", names

    def convert_with_timm(self, where: str, state: Tree) -> Iterator[WeightMatch]:
        """Yield the weights of a file of the original authors as timm itself renames them.

        None if timm has no conversion of this family that fits, or if it would interpolate.
        """
        family = sys.modules.get(type(self.module).__module__)
        converts = [f for name in FILTERS if (f := getattr(family, name, None)) is not None]
        if not converts or not type(self.module).__module__.startswith("timm."):
            return
        tensors = {drop_wrappers(n): v for n, v in state.items() if isinstance(v, Tensor)}
        tensors = {name: tensor for name, tensor in tensors.items() if not tensor.is_meta}
        sizes = {tensor.numel() for tensor in tensors.values()}
        # Networks with registers keep no position of the cls token.
        sizes |= {tensor[:, 1:].numel() for tensor in tensors.values() if tensor.ndim == 3}
        converted = call_filter(converts[0], tensors, self.module)
        match = WeightMatch(where, "", "converted by timm", converted, self.target)
        positions = [v for n, v in match.matched.items() if "embed" in n or "position" in n]
        if match.fits and all(v.numel() in sizes for v in positions):
            used = {memory_of(value) for value in converted.values()}
            left = [name for name, value in tensors.items() if memory_of(value) not in used]
            match.dropped = {"by timm": left}
            yield match

    def sort_left_over(self, match: WeightMatch, fits: Iterable[str]) -> None:
        """Add the names that the network does not take; fits: parts of the file that fit, too."""
        prefix = match.prefix
        used = {memory_of(tensor) for tensor in match.matched.values()}
        parent = prefix[: prefix.rfind(".", 0, -1) + 1]
        for name, value in match.state.items():
            is_inside, inner = name.startswith(prefix), name.removeprefix(prefix)
            if memory_of(value) in used or (is_inside and inner in self.target):
                continue
            kinds = {
                "head": below(inner if is_inside else name.removeprefix(parent), self.heads),
                "outside": not is_inside,
                "of pretraining": TRAINING.match(inner),
                "constant": CONSTANT.search(inner),
                "other set": match.part == ROOT and below(name, fits),
            }
            kind = next((kind for kind, applies in kinds.items() if applies), "")
            names = match.dropped.setdefault(kind, []) if kind else match.unexpected
            names.append(inner)


def find_states(tree: Tree, part: str) -> dict[str, dict[str, Any]]:
    """Return the mappings with tensors of a part (nested or a prefix), by their path in it."""
    states = dict(iterate_states(tree))
    if part in {"", ROOT}:
        return states
    prefix, inside = f"{part}.", {}
    for where, state in states.items():
        outer = f"{where}." if where else ""
        if outer.startswith(prefix):
            inside[outer.removeprefix(prefix).rstrip(".")] = state
        elif prefix.startswith(outer):
            start = prefix.removeprefix(outer)
            flat = {n.removeprefix(start): v for n, v in state.items() if n.startswith(start)}
            if any(isinstance(value, Tensor) for value in flat.values()):
                inside.setdefault("", flat)
    return inside


def iterate_states(
    tree: Tree, path: tuple[str, ...] = (), outer: tuple[int, ...] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (dotted path, names and values) of every mapping that directly holds tensors."""
    if len(path) > MAX_DEPTH or id(tree) in outer:
        return
    named = {str(name): value for name, value in tree.items()}
    if any(isinstance(value, Tensor) for value in named.values()):
        yield ".".join(path), named
    for name, value in named.items():
        if isinstance(value, Mapping):
            yield from iterate_states(value, (*path, name), (*outer, id(tree)))


def prefix_in_file(prefix: str, names: Mapping[str, str]) -> str:
    """Return what a prefix of renamed names (name of the file -> new name) is in the file."""
    name = next((name for name, new in names.items() if new.startswith(prefix)), prefix)
    if name.startswith(prefix):
        return prefix.rstrip(".")
    starts = accumulate(name.split("."), "{}.{}".format)
    return next((start for start in starts if drop_wrappers(start) + "." == prefix), "")


def describe_misfit(name: str, value: object, target: Tensor) -> str:
    """Return why `value` cannot be the tensor `name` of a network; '' if it can."""
    if not isinstance(value, Tensor):
        return f"{name} is a {type(value).__name__}"
    if value.shape != target.shape:
        return f"{name} is {tuple(value.shape)}, not {tuple(target.shape)}"
    same = value.is_floating_point() == target.is_floating_point() and not value.is_complex()
    if not same or value.layout != target.layout:
        return f"{name} is {value.dtype} {value.layout}, not {target.dtype} {target.layout}"
    return f"{name} is a shape without values" if value.is_meta else ""


def number_children(
    names: Iterable[str], children: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (prefix, number -> child) where as many children are numbered as the network has.

    An nn.Sequential numbers its children in forward order, with gaps where one has no weights.
    """
    numbers: dict[str, set[int]] = {}
    for name in names:
        for number in CHILD.finditer(name[:LONGEST]):
            numbers.setdefault(name[: number.start()], set()).add(int(number[0]))
    for prefix in sorted(numbers, key=len):
        if len(numbers[prefix]) == len(children):
            yield prefix, dict(zip(map(str, sorted(numbers[prefix])), children, strict=True))


def call_filter(convert: Any, state: Mapping[str, Tensor], module: nn.Module) -> dict[str, Any]:
    """Return the renamed names of a filter of timm; none if it does not know these."""
    parameters = inspect.signature(convert).parameters
    options = {"adapt_layer_scale": True} if "adapt_layer_scale" in parameters else {}
    arguments = [dict(state), module][: len(parameters)]
    try:
        return dict(convert(*arguments, **options))
    except (LookupError, ValueError, TypeError, AttributeError, RuntimeError, AssertionError):
        return {}


def memory_of(value: object) -> tuple[object, ...]:
    """Return where the values of a tensor are in memory, so that a reshaped one counts as equal."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_meta:
        return (id(value),)
    return value.untyped_storage().data_ptr(), value.storage_offset(), value.numel()


def suggest_fix(match: WeightMatch, module: nn.Module, tree: Tree, file: FileReference) -> str:
    stated = named_architecture(tree)
    right = "the architecture that the weights were trained with"
    right = f"{stated}, which the file names: {replace(file, arch=stated)}" if stated else right
    if match.fits:
        extra = join_names(list(dict.fromkeys(name.split(".")[0] for name in match.unexpected)))
        return f"give {right}; or, if it acts after the features only, take {extra} out of the file"
    library, advice = recognise_library(iterate_states(tree))
    if library and not stated and 10 * len(match.matched) < len(module.state_dict()):
        return f"the names are those of {library}: {advice}"
    patch = getattr(getattr(module, "patch_embed", None), "patch_size", None)
    faults = [*match.missing, *(misfit.partition(" ")[0] for misfit in match.misfit)]
    if faults == ["pos_embed"] and patch and match.matched["pos_embed"].ndim == 3:
        side = math.isqrt(match.matched["pos_embed"].shape[1]) * int(patch[0])
        size = replace(file, arch=f"{file.arch or 'ARCH'}?img_size={side}")
        return f"the weights are for images of {side} px: pass '{size}'"
    return f"give {right} (--arch, or FILE@ARCH)"
