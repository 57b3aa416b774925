"""The architecture: layers, no import circles, private modules, unique names, light imports."""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

import pytest
from support.cases import read_cases
from support.imports import LAYERS, PACKAGES, ROOT, circles, imports, layer_package, modules, tree

CASES = read_cases("pages")

SIBLINGS = (frozenset({"pretrain", "protocols"}), frozenset({"fsbench.sweep", "fsbench.claims"}))
"""Packages of one layer that do not import each other."""


FORBIDDEN = (
    "asked", "each", "found", "given", "held", "kept", "known", "like", "look", "own", "seen",
    "this", "told", "wanted",
)  # fmt: skip
"""Words that say nothing about the value that they name."""


every = pytest.mark.parametrize("module", sorted(modules()))


@every
def test_a_module_imports_only_from_layers_below(module: str) -> None:
    package = layer_package(module)
    for imported in imports(module):
        if imported == "fsbench":  # its version; the public functions are imported by their module
            continue
        other = layer_package(imported)
        assert LAYERS[other] <= LAYERS[package], f"{module} imports {imported} from a higher layer"
        assert frozenset({package, other}) not in SIBLINGS, f"{module} imports {imported}"


def test_no_module_imports_itself_through_others() -> None:
    circular = circles({module: imports(module) for module in modules()})
    assert not circular, "import circles:\n" + "\n".join(" <-> ".join(c) for c in circular)


def private_imports(module: str) -> Iterator[str]:
    """Private names and modules that a module imports from outside the package that owns them."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        else:
            continue
        for path in paths:
            parts = path.split(".")
            private = next((i for i, p in enumerate(parts) if p[0] == "_" and p[:2] != "__"), None)
            if private is None or parts[0] not in PACKAGES:
                continue
            owner = ".".join(parts[:private])
            inside = modules()[module].name == "__init__.py" and module == owner
            if not (inside or module.startswith(f"{owner}.")):
                yield ".".join(parts[: private + 1])


@every
def test_a_private_module_is_imported_by_its_own_package_only(module: str) -> None:
    offenders = set(private_imports(module))
    assert not offenders, f"{module} imports {sorted(offenders)}"


def definitions(module: str) -> Iterator[str]:
    """Public classes and functions of a module; functions of the command line are its commands."""
    for node in tree(module).body:
        function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if function and module.startswith("fsbench.cli."):
            continue
        if (function or isinstance(node, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name


def test_a_public_name_means_one_thing() -> None:
    owners: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for name in definitions(module):
            packages = tuple(f"{package}." for package in CASES["repeated"].get(name, ()))
            if not (packages and module.startswith(packages)):
                owners[name].append(module)
    repeated = {name: where for name, where in owners.items() if len(where) > 1}
    assert not repeated, "\n".join(f"{n}: {', '.join(where)}" for n, where in repeated.items())


def forbidden_names(module: str) -> Iterator[str]:
    """Forbidden words among public functions and classes, and their parameters and fields."""
    scopes = [
        node for node in ast.walk(tree(module)) if isinstance(node, ast.Module | ast.ClassDef)
    ]
    for node in (node for scope in scopes for node in scope.body):
        if isinstance(node, ast.AnnAssign):
            names = [ast.unparse(node.target)]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            every = [n.arg for n in ast.walk(getattr(node, "args", node)) if isinstance(n, ast.arg)]
            names = [node.name, *(every if isinstance(node, ast.FunctionDef) else [])]
        else:
            continue
        yield from (name for name in names if name in FORBIDDEN)


@every
def test_public_names_say_what_they_name(module: str) -> None:
    offenders = set(forbidden_names(module))
    assert not offenders, f"{module}: {sorted(offenders)}"


def test_random_numbers_come_from_seeding_only() -> None:
    """Only one module seeds or reads a global random generator."""
    banned = ("manual_seed", "np.random.", "numpy.random", "random.seed", "set_rng_state")
    for module, path in modules().items():
        if module == "fsbench.core.seeding":
            continue
        code = path.read_text(encoding="utf8")
        used = [word for word in banned if word in code]
        assert not used, f"{path} uses {used}: use fsbench.core.seeding"


@pytest.mark.parametrize("statement", CASES["light"])
def test_light_imports_do_not_load_heavy_libraries(statement: str) -> None:
    heavy = {"torch", "timm", "pyarrow", "matplotlib", "sklearn", "datasets"}
    check = f"{statement}; import sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
