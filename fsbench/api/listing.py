"""What the suite offers, as rows read from the registries: `fsbench ls` and the README tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fsbench.core.errors import UnknownName

if TYPE_CHECKING:
    from pretrain.method import PaperRecipe
    from pretrain.recipes.plan import Plan

Row = dict[str, Any]
MANY = 4
"""Figures that a table shows one by one."""
DETAILS = ("figures", "fields")
"""Columns of --json alone."""


def rows(what: str) -> list[Row]:
    """The rows of one listing. Raises UnknownName with the nearest listing."""
    if what not in LISTINGS:
        raise UnknownName("listing", what, LISTINGS)
    return LISTINGS[what]()


def list_methods() -> list[str]:
    """Return the names of all pretraining methods.

    Examples
    --------
    >>> import fsbench
    >>> "seal" in fsbench.list_methods()
    True
    """
    from pretrain import METHODS

    return list(METHODS.names())


def list_datasets() -> list[str]:
    """Return the names of all data sets, sources of pretraining and targets of evaluation.

    Examples
    --------
    >>> import fsbench
    >>> {"eurosat", "tinyimagenet"} <= set(fsbench.list_datasets())
    True
    """
    from fsbench.data import SOURCES, TARGETS

    return sorted({*SOURCES.names(), *TARGETS.names()})


def list_heads() -> list[str]:
    """Return the names of all heads that few-shot tasks may use.

    Examples
    --------
    >>> import fsbench
    >>> fsbench.list_heads()[:3]
    ['affine', 'centroid', 'cosine']
    """
    from fsbench.core.specs import FITTED

    return list(FITTED.names())


def list_models(pattern: str = "*") -> list[str]:
    """Return references of timm's models whose names match a pattern.

    Parameters
    ----------
    pattern : str
        As a shell takes it, e.g. `resnet*`.

    Returns
    -------
    list of str
        `timm/NAME`, to be used as `model` in `fsbench.evaluate`.

    Examples
    --------
    >>> import fsbench
    >>> fsbench.list_models("resnet18*")
    ['timm/resnet18', 'timm/resnet18d']
    """
    import timm

    return [f"timm/{name}" for name in timm.list_models(pattern)]


def methods() -> list[Row]:
    from pretrain import METHODS
    from pretrain.method import hooks_of

    return [
        {
            "method": name,
            "does": summary(sys.modules[method.__module__].__doc__),
            "source": method.SOURCE,
            "recipes": [f"paper/{row.name}" for row in method.PAPER],
            "rank": method.RANK.name.lower(),
            "hooks": list(hooks_of(method)),
            "neutral": method.NEUTRAL if isinstance(method.NEUTRAL, str) else dict(method.NEUTRAL),
            "options": {n: f.get_default() for n, f in method.model_fields.items()},
        }
        for name, method in METHODS.items()
    ]


def recipes() -> list[Row]:
    from pretrain.recipes.registry import RECIPES

    return [
        {
            "recipe": name,
            "method": "+".join(method.name for method in recipe.methods),
            "architecture": recipe.architecture,
            "source": recipe.source,
            "px": recipe.input_size,
            "rounds x epochs": f"{recipe.plan.total_rounds} x {length(recipe.plan)}",
            **published(RECIPES.paper_row(name)),
        }
        for name, recipe in ((name, RECIPES.load(name)) for name in RECIPES.names())
    ]


def length(plan: Plan) -> str:
    """Of a round."""
    return f"{plan.round_steps} steps" if plan.round_steps else str(plan.epochs)


def published(row: PaperRecipe | None) -> Row:
    """Where a paper has a recipe, and its accuracies (%); many of them are only counted."""
    figures = row.figures if row else ()
    shown = [f"{100 * f.accuracy:.2f}" + (f" ({f.at})" if f.at else "") for f in figures]
    return {
        "paper": row.paper if row else None,
        "row": row.row if row else None,
        "figure": ", ".join(shown) if len(shown) <= MANY else f"{len(shown)} figures (--json)",
        "figures": [figure.model_dump(mode="json") for figure in figures],
    }


def datasets() -> list[Row]:
    from fsbench.data import SOURCES, TARGETS

    facts = [entry.FACTS for registry in (SOURCES, TARGETS) for entry in registry.values()]
    return [
        {
            "data set": f.name,
            "domain": f.domain,
            "classes": len(f.classes),
            "images": f.n_images,
            "licence": f.license,
            "title": f.title,
        }
        for f in facts
    ]


def protocols() -> list[Row]:
    """Each at its defaults; --input-size makes a variant of its own, e.g. linear@ibm:64px."""
    from fsbench.api.variants import fields, variants

    found = {name: fields(spec) for name, spec in variants().items()}
    return [
        {
            "protocol": name,
            "pool": each.get("episode.pool", "full"),
            "track": each.get("episode.track", "-"),
            "px": each["image.input_size"],
            "native size": f"{name}:64px",
            "fields": each,
        }
        for name, each in found.items()
    ]


def heads() -> list[Row]:
    """Heads that take the place of `linear`, with their defaults."""
    from fsbench.core.specs import FITTED, SGD

    found = {name: FITTED.load(name)() for name in FITTED.names() if name not in SGD}
    return [
        {
            "head": name,
            "does": summary(sys.modules[type(spec).__module__].__doc__).partition(": ")[2],
            "transductive": spec.transductive,
            "settings": spec.model_dump(mode="json", exclude={"transductive"}),
        }
        for name, spec in found.items()
    ]


def flat(values: dict[str, Any], prefix: str = "") -> Row:
    """Nested fields under dotted names."""
    found: Row = {}
    for key, value in values.items():
        nested = isinstance(value, dict)
        found |= flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return found


def backbones() -> list[Row]:
    from fsbench.backbones import SOURCES
    from fsbench.backbones.architectures import ARCHITECTURES

    schemes = [
        {"reference": source.FORM, "kind": "source", "what": summary(source.__doc__)}
        for source in SOURCES.values()
    ]
    own = [
        {"reference": f"fsbench/{name}", "kind": "architecture", "what": arch.summary}
        for name, arch in ARCHITECTURES.items()
    ]
    return [*schemes, *own]


def analyses() -> list[Row]:
    from protocols.analyses import ANALYSES

    return [
        {
            "analysis": name,
            "finds": summary(sys.modules[file.run.__module__].__doc__),
            "needs": [NEEDS[need] for need in file.NEEDS] or ["weights"],
            "source": file.SOURCE,
            "settings": {n: f.get_default() for n, f in file.SETTINGS.model_fields.items()},
        }
        for name, file in ANALYSES.items()
    ]


NEEDS = {"head": "a run of ours", "images": "images"}


def entries() -> list[Row]:
    from leaderboard.board.published import published

    return [
        {
            "entry": entry.name,
            "kind": "published",
            "source": entry.source,
            "cells": len(entry.cells),
        }
        for entry in published()
    ]


def summary(docstring: str | None) -> str:
    """First line of a docstring."""
    return (docstring or "").strip().split("\n", maxsplit=1)[0]


LISTINGS: dict[str, Callable[[], list[Row]]] = {
    "methods": methods,
    "recipes": recipes,
    "datasets": datasets,
    "protocols": protocols,
    "heads": heads,
    "backbones": backbones,
    "analyses": analyses,
    "entries": entries,
}
