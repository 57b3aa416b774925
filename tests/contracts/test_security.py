"""What the packages never do: run pickles, shells or text, parse XML, serve, unpack blindly."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fsbench", "pretrain", "protocols", "leaderboard")

FORBIDDEN = {
    *("eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec"),
    *("os.system", "os.popen", "os.spawnl", "os.execv", "pty.spawn"),
    *("subprocess.getoutput", "subprocess.getstatusoutput"),
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.loads", "shelve.open"),
    *("joblib.load", "pandas.read_pickle", "cloudpickle.loads", "dill.load", "torch.jit.load"),
    *("yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "tempfile.mktemp"),
    *("torch.hub.load", "torch.hub.load_state_dict_from_url"),
    *("ElementTree.parse", "ElementTree.fromstring", "ElementTree.XML", "ElementTree.iterparse"),
    *("Template", "Markup", "shutil.unpack_archive"),
}
MODULES = {"xml.dom", "xml.sax", "lxml", "http.server", "socketserver", "flask", "dill", "shelve"}
"""Parsers that follow entities, servers, and more pickles: never imported."""
IMPORTERS = {
    "fsbench/__init__.py",
    "fsbench/cli/main.py",
    "fsbench/core/registry.py",
    "fsbench/backbones/sources/py.py",
}
"""Where a name becomes a module: the tables of the public API and of the commands, files of our own
packages, and py: of the command line."""


OWN = {
    ("fsbench/core/plotting.py", "ElementTree.fromstring"),
    ("leaderboard/site/page.py", "Markup"),
}
"""Drawings that this process made a moment ago; styles, scripts and escaped JSON of the page."""


def dotted(node: ast.AST) -> str:
    """The written name of what is called, e.g. os.system; '' for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value) or '?'}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def argument_of(call: ast.Call, name: str) -> object:
    """The literal of a keyword; None where it is not there, ... where it is no literal."""
    value = next((k.value for k in call.keywords if k.arg == name), ast.Constant(None))
    return value.value if isinstance(value, ast.Constant) else ...


def complaints(text: str, place: str = "") -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imported(node)
        elif isinstance(node, ast.Call) and (wrong := called(node, place)):
            yield f"{node.lineno}: {wrong}"


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    home = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    for name in [*home, *(alias.name for alias in node.names)]:
        if any(name == module or name.startswith(f"{module}.") for module in MODULES):
            yield f"{node.lineno}: imports {name}"
    for alias in node.names:
        if home and f"{home[0].rpartition('.')[2]}.{alias.name}" in FORBIDDEN:
            yield f"{node.lineno}: imports {home[0]}.{alias.name}"


def called(call: ast.Call, place: str) -> str:
    """Why a call is refused; '' if it is not."""
    name = dotted(call.func)
    last_two = ".".join(name.split(".")[-2:])
    if (place, last_two) not in OWN and {name, last_two} & FORBIDDEN:
        return name
    if argument_of(call, "shell") not in (None, False):
        return f"{name} through a shell"
    if name == "torch.load" and argument_of(call, "weights_only") is not True:
        return "torch.load without weights_only"
    if name.endswith("np.load") and argument_of(call, "allow_pickle") not in (None, False):
        return "np.load of pickles"
    if name.endswith("yaml.load"):
        loader = dotted(call.args[1]) if len(call.args) > 1 else ""
        return "" if loader in {"yaml.SafeLoader", "yaml.BaseLoader"} else "yaml.load"
    if name.startswith("subprocess.") and not (call.args and isinstance(call.args[0], ast.List)):
        return f"{name} of something else than a list of words"
    if name.endswith("extractall"):
        return "extractall, which nothing bounds"
    if name.endswith("Environment") and argument_of(call, "autoescape") is not True:
        return "a template environment that does not escape"
    if name in {"importlib.import_module", "import_module"} and place not in IMPORTERS:
        return "import of a name"
    return ""


@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_run_nothing_foreign(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    places = {file: file.relative_to(ROOT).as_posix() for file in files}
    findings = {p: list(complaints(f.read_text(encoding="utf8"), p)) for f, p in places.items()}
    assert {place: wrong for place, wrong in findings.items() if wrong} == {}
    assert len(files) > 10


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.system('ls')",
        "eval(text)",
        "exec(text)",
        "import pickle\npickle.load(file)",
        "import pickle as p\nfrom pickle import loads",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=False)",
        "import torch\ntorch.load(path, weights_only=trusted)",
        "import yaml\nyaml.load(text)",
        "import yaml\nyaml.load(text, yaml.Loader)",
        "import subprocess\nsubprocess.run('ls ' + x)",
        "import subprocess\nsubprocess.run(['ls'], shell=True)",
        "import subprocess\nsubprocess.run(['ls'], shell=maybe)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "from xml.etree import ElementTree\nElementTree.fromstring(text)",
        "import xml.dom.minidom",
        "import tempfile\ntempfile.mktemp()",
        "archive.extractall(folder)",
        "import jinja2\njinja2.Environment()",
        "import http.server",
        "import importlib\nimportlib.import_module(name)",
    ],
)
def test_each_of_these_would_be_found(text: str) -> None:
    assert list(complaints(text))


def test_nothing_serves_pages() -> None:
    """The board's page is one file that a browser opens, so there is no server to bind."""
    words = ("http.server", "socketserver", "serve_forever", "uvicorn", "0.0.0.0")
    servers = [
        f for p in PACKAGES for f in (ROOT / p).rglob("*.py") for w in words if w in f.read_text()
    ]
    assert servers == []
