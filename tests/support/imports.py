"""The import graph of the packages, read from their source: modules, sub-packages, circles."""

import ast
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fsbench", "pretrain", "protocols", "leaderboard")


LAYERS = {
    "fsbench.core": 0,
    "fsbench.data": 1,
    "fsbench.backbones": 2,
    "pretrain": 3,
    "protocols": 3,
    "fsbench.results": 4,
    "leaderboard": 5,
    "fsbench.api": 6,
    "fsbench.sweep": 7,
    "fsbench.claims": 7,
    "fsbench.cli": 8,
    "fsbench": 8,
    "fsbench.__main__": 9,
}
"""A package imports from its own layer and those below; the longest prefix of a module counts."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    """Modules of the packages by name; scripts in folders that are no package are left out."""
    return {
        name_of(path): path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if (path.parent / "__init__.py").is_file()
    }


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf8"))


def is_for_types_only(node: ast.AST) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`, whose body never runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def walk(node: ast.AST, typing: bool) -> Iterator[ast.AST]:
    """All nodes below a node; imports for type checking only if `typing` is set."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and not typing and is_for_types_only(child):
            for statement in child.orelse:
                yield statement
                yield from walk(statement, typing)
        else:
            yield child
            yield from walk(child, typing)


@cache
def imports(module: str, typing: bool = True) -> frozenset[str]:
    """Modules that a module imports anywhere: inside functions too, for type checking if asked."""
    return imported_names(tree(module), frozenset(modules()), typing) - {module}


def imported_names(code: ast.Module, existing: Set[str], typing: bool) -> frozenset[str]:
    """Those of the existing modules that a piece of code imports."""
    names: set[str] = set()
    for node in walk(code, typing):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                names.add(submodule if submodule in existing else node.module)
    return frozenset(names & existing)


def subpackage(module: str) -> str:
    """The part of a module's name that stands for its room: `fsbench.core`, `leaderboard.board`."""
    return ".".join(module.split(".")[:2])


@cache
def subpackage_graph() -> dict[str, set[str]]:
    """Which sub-packages import which when the program runs."""
    graph: dict[str, set[str]] = {}
    for module in modules():
        edges = graph.setdefault(subpackage(module), set())
        edges |= {subpackage(name) for name in imports(module, typing=False)}
    return {package: edges - {package} for package, edges in graph.items()}


def circles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the strongly connected components of two nodes or more, sorted."""
    nodes = sorted({*graph, *(node for edges in graph.values() for node in edges)})
    edges = np.array([[other in graph.get(node, ()) for other in nodes] for node in nodes])
    _, labels = connected_components(edges, connection="strong")
    components = [[n for n, at in zip(nodes, labels, strict=True) if at == c] for c in {*labels}]
    return sorted(component for component in components if len(component) > 1)


def layer_package(module: str) -> str:
    """The entry of LAYERS that a module belongs to."""
    while module not in LAYERS:
        module = module.rpartition(".")[0]
    return module
