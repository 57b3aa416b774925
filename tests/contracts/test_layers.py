"""Imports run one way (design.md 2), and what must answer at once never loads torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fsbench", "pretrain", "protocols", "leaderboard")
# Longest prefix wins; equal layers may import each other unless they are siblings.
LAYERS = {
    "fsbench": 0,
    "fsbench.core": 0,
    "fsbench.data": 1,
    "fsbench.backbones": 2,
    "pretrain": 3,
    "protocols": 3,
    "fsbench.results": 4,
    "leaderboard": 5,
    "fsbench.api": 6,
    "fsbench.reproductions": 6,
    "fsbench.sweep": 7,
    "fsbench.cli": 8,
    "fsbench.__main__": 9,
}
SIBLINGS = {frozenset({"pretrain", "protocols"})}


def layer(module: str) -> int:
    parts = module.split(".")
    while ".".join(parts) not in LAYERS:
        parts.pop()
    return LAYERS[".".join(parts)]


def modules() -> list[tuple[str, Path]]:
    """Modules of the packages; scripts in folders that are no package are not imported."""
    files = [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if (path.parent / "__init__.py").is_file()
    ]
    names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in files]
    return [(n.removesuffix(".__init__"), p) for n, p in zip(names, files, strict=True)]


def imports(path: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name.split(".")[0] in PACKAGES]


@pytest.mark.parametrize(
    ("module", "path"), modules(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_imports_only_from_layers_below(module: str, path: Path) -> None:
    for used in imports(path):
        assert layer(used) <= layer(module), f"{path} (layer {layer(module)}) imports {used}"
        pair = frozenset({module.split(".")[0], used.split(".")[0]})
        assert pair not in SIBLINGS, f"{path}: siblings meet only through Backbone, not {used}"


def test_random_numbers_come_from_seeding_only() -> None:
    """Nothing else seeds or reads a global generator (design.md 5)."""
    banned = ("manual_seed", "np.random.", "numpy.random", "random.seed", "set_rng_state")
    for module, path in modules():
        if module == "fsbench.core.seeding":
            continue
        code = path.read_text(encoding="utf8")
        assert not [word for word in banned if word in code], (
            f"{path} must use fsbench.core.seeding"
        )


@pytest.mark.parametrize(
    "statement",
    [
        "import leaderboard.reports.render",
        "from fsbench.cli.main import build; build()",
        "import fsbench.data",
    ],
)
def test_light_imports_leave_torch_alone(statement: str) -> None:
    check = (
        f"{statement}; import sys; print(sorted({{'torch','timm','pyarrow'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
