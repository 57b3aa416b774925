"""Lists of methods, recipes, data sets, protocols ..., read from the registries.

`fsbench ls` and the tables of the READMEs print them.
"""

import sys
from collections.abc import Callable, Collection
from typing import Any

from fsbench.core.errors import UnknownName
from fsbench.core.io import flatten_mapping
from fsbench.core.registry import SUITE, Registry
from fsbench.core.specs import FITTED, PROTOCOL_SIZE, SAMPLING, SGD, EpisodicSpec, Spec
from fsbench.core.tasks import PROBES, TaskId
from fsbench.data import SOURCES, TARGETS
from leaderboard.official import load_official_boards
from leaderboard.published import load_published
from pretrain import METHODS
from pretrain.method import hooks_of
from pretrain.recipes.registry import find_paper_row, load_recipe, recipe_names
from protocols.analyses import ANALYSES

Row = dict[str, Any]
MAX_FIGURES = 4
"""Published figures that a table lists; more are counted."""
BRIEF = {
    "methods": ("method", "does"),
    "recipes": (
        *("recipe", "method", "architecture", "source", "px", "rounds x epochs"),
        *("paper", "row", "figure"),
    ),
    "datasets": ("data set", "domain", "classes", "images", "title"),
    "protocols": ("protocol", "pool", "track", "px"),
    "heads": ("head", "does"),
    "analyses": ("analysis", "finds", "needs"),
    "boards": ("board", "date", "data sets", "heads"),
    "published": ("entry", "results"),
}
"""Columns of the table of a listing, where --json has more."""
NEEDS = {"head": "a run of fsbench pretrain", "images": "images"}
"""Needs of analyses, in words."""


def rows(what: str = "", text: str = "") -> list[Row]:
    """Return the rows of one listing whose names contain a text; without one, all listings.

    Raises UnknownName.
    """
    if not what:
        return [{"what": name, "lists": summary(f.__doc__)} for name, f in LISTINGS.items()]
    if what not in LISTINGS:
        raise UnknownName("listing", what, LISTINGS)
    return [row for row in LISTINGS[what]() if text.lower() in next(iter(row.values())).lower()]


def list_methods() -> list[str]:
    """Return the names of all pretraining methods.

    >>> import fsbench
    >>> "seal" in fsbench.list_methods()
    True
    """
    return list(METHODS.names())


def list_datasets() -> list[str]:
    """Return the names of all data sets, sources of pretraining and targets of evaluation.

    >>> import fsbench
    >>> {"eurosat", "tinyimagenet"} <= set(fsbench.list_datasets())
    True
    """
    return sorted({*SOURCES.names(), *TARGETS.names()})


def list_heads() -> list[str]:
    """Return the names of all heads that few-shot tasks may use.

    >>> import fsbench
    >>> fsbench.list_heads()[:3]
    ['affine', 'centroid', 'cosine']
    """
    return list(FITTED.names())


def list_models(pattern: str = "*") -> list[str]:
    """Return references of timm's models whose names match a pattern, as of a shell.

    >>> import fsbench
    >>> fsbench.list_models("resnet18*")
    ['timm/resnet18', 'timm/resnet18d']
    """
    import timm

    return [f"timm/{name}" for name in timm.list_models(pattern)]


def list_registry(
    registry: Registry[Any],
    key: str,
    reason: str,
    describe: Callable[[str, Any], Row],
    but: Collection[str] = (),
) -> list[Row]:
    """Return a row for every entry but some, and for every plug-in that cannot be loaded.

    key, reason: columns of the name, and of why a plug-in cannot be loaded.
    """
    entries, errors = registry.usable(but)
    rows: list[Row] = [
        {key: name, "from": registry.origin(name), **describe(name, entry)}
        for name, entry in entries.items()
    ]
    for name, error in errors.items():
        named = {key: name, "from": registry.origin(name)}
        rows.append(dict.fromkeys(rows[0]) | named | {reason: f"cannot be used: {error.message}"})
    return rows


def methods() -> list[Row]:
    """Pretraining methods, with their papers, hooks and options."""

    def describe(name: str, method: Any) -> Row:
        title, _, does = summary(sys.modules[method.__module__].__doc__).partition(": ")
        return {
            "does": does or title,
            "title": title,
            "source": method.SOURCE,
            "recipes": [f"paper/{row.name}" for row in method.PAPER],
            "rank": method.RANK.name.lower(),
            "hooks": list(hooks_of(method)),
            "neutral": method.NEUTRAL if isinstance(method.NEUTRAL, str) else dict(method.NEUTRAL),
            "options": {n: f.get_default() for n, f in method.model_fields.items()},
        }

    return list_registry(METHODS, "method", "does", describe)


def recipes() -> list[Row]:
    """Recipes of fsbench pretrain; fsbench ls recipes toy lists one scale."""
    listed = []
    for name in recipe_names():
        recipe, paper = load_recipe(name), find_paper_row(name)
        plan, figures = recipe.plan, paper.figures if paper else ()
        length = f"{plan.round_steps} steps" if plan.round_steps else plan.epochs
        shown = [f"{100 * f.accuracy:.2f}" + (f" ({f.at})" if f.at else "") for f in figures]
        is_short = len(shown) <= MAX_FIGURES
        row = {
            "recipe": name,
            "method": "+".join(method.name for method in recipe.methods),
            "architecture": recipe.architecture,
            "source": recipe.source,
            "px": recipe.input_size,
            "rounds x epochs": f"{plan.total_rounds} x {length}",
            "paper": paper and paper.paper,
            "row": paper and paper.row,
            "figure": ", ".join(shown) if is_short else f"{len(shown)} figures (--json)",
            "figures": [figure.model_dump(mode="json") for figure in figures],
        }
        listed.append(row)
    return listed


def datasets() -> list[Row]:
    """Data sets: sources of pretraining and targets of evaluation."""

    def describe(name: str, entry: Any) -> Row:
        facts = entry.FACTS
        return {
            "data set": facts.name,
            "domain": facts.domain,
            "classes": len(facts.classes),
            "images": facts.n_images,
            "licence": facts.license,
            "title": facts.title,
        }

    registries: tuple[Registry[Any], ...] = (SOURCES, TARGETS)
    return [row for r in registries for row in list_registry(r, "data set", "title", describe)]


def protocols() -> list[Row]:
    """Protocols of evaluation, with their default fields."""
    return [
        {
            "protocol": name,
            "pool": spec.episode.pool if isinstance(spec, EpisodicSpec) else "full",
            "track": spec.episode.track if isinstance(spec, EpisodicSpec) else "-",
            "px": spec.image.input_size,
            "fields": flatten_mapping(spec.model_dump(mode="json")),
        }
        for name, spec in protocol_specs().items()
    ]


def protocol_specs() -> dict[str, Spec]:
    """Return the spec of every protocol with its defaults, by name; of a data set with a split."""
    from fsbench.api.request import EvaluationRequest

    heads = sorted([*SGD, *FITTED.usable(SGD)[0]])
    tasks = [TaskId("cub200", 5, 1, head, protocol) for head in heads for protocol in SAMPLING]
    tasks += [TaskId("cub200", probe=probe) for probe in PROBES]
    request = EvaluationRequest(())
    return {task.mode or task.shape: request.spec(task, PROTOCOL_SIZE) for task in tasks}


def heads() -> list[Row]:
    """Heads that take the place of linear, with their defaults."""

    def describe(name: str, settings: Any) -> Row:
        spec = settings()
        return {
            "does": summary(sys.modules[settings.__module__].__doc__).partition(": ")[2],
            "transductive": spec.transductive,
            "settings": spec.model_dump(mode="json", exclude={"transductive"}),
        }

    return list_registry(FITTED, "head", "does", describe, SGD)


def backbones() -> list[Row]:
    """References of backbones: sources, and architectures of fsbench."""
    from fsbench.backbones import SOURCES
    from fsbench.backbones.architectures.presets import PRESETS

    def describe(name: str, file: Any) -> Row:
        return {"reference": file.FORM, "kind": "source", "what": summary(file.__doc__)}

    return list_registry(SOURCES, "reference", "what", describe) + [
        {"reference": f"fsbench/{name}", "from": SUITE, "kind": "architecture", "what": a.summary}
        for name, a in sorted(PRESETS.items())
    ]


def models() -> list[Row]:
    """Models of timm, with the tags of their weights."""
    import timm

    tags: dict[str, list[str]] = {name: [] for name in timm.list_models()}
    for name in timm.list_models(pretrained=True):
        architecture, _, tag = name.partition(".")
        tags[architecture].append(tag)
    return [{"model": f"timm/{name}", "weights": tags[name]} for name in tags]


def analyses() -> list[Row]:
    """Analyses of fsbench analyze, with their settings."""

    def describe(name: str, file: Any) -> Row:
        return {
            "finds": summary(sys.modules[file.run.__module__].__doc__),
            "needs": [NEEDS[need] for need in file.NEEDS] or ["weights"],
            "source": file.SOURCE,
            "settings": {n: f.get_default() for n, f in file.SETTINGS.model_fields.items()},
        }

    return list_registry(ANALYSES, "analysis", "finds", describe)


def boards() -> list[Row]:
    """Official boards of fsbench leaderboard init, with their columns."""
    rows = []
    for board in load_official_boards():
        columns = [column.name for column in board.columns or ()]
        row: Row = {"board": board.title, "date": board.date}
        row["data sets"] = [*dict.fromkeys(column.task.dataset for column in columns)]
        row["heads"] = [*dict.fromkeys(c.task.head or c.task.probe for c in columns)]
        rows.append(row | {"columns": [str(column) for column in columns]})
    return rows


def published() -> list[Row]:
    """Numbers published in papers, which boards show and do not rank."""
    return [
        {"entry": e.name, "source": e.source, "results": len(e.cells)} for e in load_published()
    ]


def summary(docstring: str | None) -> str:
    """Return the first line of a docstring."""
    return (docstring or "").strip().split("\n", maxsplit=1)[0]


LISTED = (methods, recipes, datasets, protocols, heads, backbones, models, analyses, boards)
LISTINGS: dict[str, Callable[[], list[Row]]] = {f.__name__: f for f in (*LISTED, published)}
