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


@cache
def modules() -> dict[str, Path]:
    """Modules of the packages by name; scripts in folders that are no package are left out."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
        if (path.parent / "__init__.py").is_file()
    }


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf8"))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below a node that the program runs: nothing for type checking only."""
    for child in ast.iter_child_nodes(node):
        is_typing = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
        if not is_typing:
            yield child
        yield from walk(ast.Module(child.orelse, []) if is_typing else child)


@cache
def imports(module: str, typing: bool = True) -> frozenset[str]:
    """Return the modules that a module imports anywhere, inside functions too."""
    return imported_names(tree(module), frozenset(modules()), typing) - {module}


def imported_names(code: ast.Module, existing: Set[str], typing: bool) -> frozenset[str]:
    """Return those of the existing modules that a piece of code imports.

    typing: whether imports for type checking count.
    """
    names: set[str] = set()
    for node in ast.walk(code) if typing else walk(code):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names |= {name if name in existing else node.module for name in members}
    return frozenset(names & existing)


@cache
def subpackage_graph() -> dict[str, set[str]]:
    """Return which sub-packages, e.g. `fsbench.core`, import which when the program runs."""
    graph: dict[str, set[str]] = {}
    for module in modules():
        package, *others = (
            ".".join(name.split(".")[:2]) for name in (module, *imports(module, typing=False))
        )
        graph.setdefault(package, set()).update({*others} - {package})
    return graph


def circles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the strongly connected components of two nodes or more, sorted."""
    nodes = sorted({*graph, *(node for edges in graph.values() for node in edges)})
    edges = np.array([[other in graph.get(node, ()) for other in nodes] for node in nodes])
    _, labels = connected_components(edges, connection="strong")
    components = [[n for n, at in zip(nodes, labels, strict=True) if at == c] for c in {*labels}]
    return sorted(component for component in components if len(component) > 1)


def layer_package(module: str) -> str:
    """Return the entry of LAYERS that a module belongs to."""
    while module not in LAYERS:
        module = module.rpartition(".")[0]
    return module
