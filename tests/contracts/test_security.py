"""What the packages never do: run pickles, shells or text, parse XML, serve, unpack blindly."""

import ast
import io
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsbench.backbones import pickles

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
    "fsbench/data/catalog.py",
    "fsbench/backbones/sources/py.py",
}
"""Where a name becomes a module: the tables of the public API and of the commands, files of our own
packages, readers that our cards name, and py: of the command line."""


OWN = {
    ("fsbench/core/registry.py", "exec"),
    ("fsbench/core/registry.py", "compile"),
    ("leaderboard/site/page.py", "Markup"),
    ("fsbench/backbones/pickles.py", "pickle.Unpickler"),
    ("fsbench/data/download.py", "shutil.unpack_archive"),
}
"""The file that a user names by py:, run as the bytes whose digest is recorded; styles, scripts and
escaped JSON of the page; the unpickler whose find_class imports nothing, which the tests below hold
it to; archives whose hash was checked."""


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
        elif isinstance(node, ast.ClassDef):
            bases = {dotted(base) for base in node.bases} & FORBIDDEN
            yield from (f"{node.lineno}: {base}" for base in bases if (place, base) not in OWN)


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
        safe = {"yaml.SafeLoader", "yaml.CSafeLoader", "yaml.BaseLoader"}
        return "" if loader in safe else "yaml.load"
    if name.startswith("subprocess.") and not (call.args and isinstance(call.args[0], ast.List)):
        return f"{name} of something else than a list of words"
    if name.endswith("extractall") and (place, last_two) not in OWN:
        return "extractall, which nothing bounds"
    if name.endswith("Environment") and argument_of(call, "autoescape") is not True:
        return "a template environment that does not escape"
    literal = bool(call.args) and isinstance(call.args[0], ast.Constant)
    if name in {"importlib.import_module", "import_module"} and not literal:
        return "" if place in IMPORTERS else "import of a name"
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
        *("os.system('ls')", "eval(text)", "exec(text)", "tempfile.mktemp()"),
        *("pickle.load(file)", "from pickle import loads", "class Reader(pickle.Unpickler): ..."),
        *("torch.load(path)", "torch.load(path, weights_only=False)"),
        *("torch.load(path, weights_only=trusted)", "np.load(path, allow_pickle=True)"),
        *("yaml.load(text)", "yaml.load(text, yaml.Loader)"),
        *("subprocess.run('ls ' + x)", "subprocess.run(['ls'], shell=True)"),
        *("subprocess.run(['ls'], shell=maybe)", "importlib.import_module(name)"),
        *("ElementTree.fromstring(text)", "import xml.dom.minidom", "import http.server"),
        *("archive.extractall(folder)", "jinja2.Environment()"),
    ],
)
def test_each_of_these_would_be_reported(text: str) -> None:
    assert list(complaints(text))


NAMES = [
    *(("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "getattr")),
    *(("torch", "load"), ("torch.hub", "load"), ("torch._utils", "_rebuild_tensor_v2")),
    *(("torch.storage", "_load_from_bytes"), ("torch.nn.parameter", "Parameter")),
    *(("collections", "OrderedDict.fromkeys"), ("collections.OrderedDict", "x"), ("", "os.system")),
    *(("subprocess", "Popen"), ("functools", "partial"), ("_codecs", "encode")),
]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_pickle_reaches_no_object_of_a_package(module: str, name: str) -> None:
    kind = pickles.InertUnpickler(io.BytesIO()).find_class(module, name)
    assert kind.__mro__[1:] == (pickles.InertValue, object)


def test_the_real_objects_of_a_pickle_are_containers() -> None:
    unpickler = pickles.InertUnpickler(io.BytesIO())
    real = {unpickler.find_class(*name.rsplit(".", 1)) for name in pickles.REAL}
    assert real == {OrderedDict, set}


@pytest.mark.parametrize("name", ["torch.onnx", "torch._inductor", "os.system", "torch.load", "x"])
def test_a_type_of_values_imports_nothing(name: str) -> None:
    """torch imports some of its packages when they are named."""
    before = set(sys.modules)
    with pytest.raises(ValueError, match="unknown type"):
        pickles.find_type(type(name, (), {}))
    assert set(sys.modules) == before


def test_a_pickle_changes_no_class() -> None:
    """State is stored in slots, so that no attribute of an object hides a method of ours."""
    pickled = b"\x80\x02cos\nsystem\n)\x81}(X\x05\0\0\0itemsK\x01X\x06\0\0\0fieldsK\x02ub."
    value = pickles.InertUnpickler(io.BytesIO(pickled)).load()
    assert value.items == {}
    assert value.fields == {"items": 1, "fields": 2}
    assert not hasattr(value, "__dict__")
    for target in (b"cos\nsystem\n", b"ccollections\nOrderedDict\n", b"c__builtin__\nset\n"):
        data = b"\x80\x02" + target + b"N}X\x01\0\0\0aK\x01s\x86b."
        with pytest.raises((TypeError, AttributeError)):
            pickles.InertUnpickler(io.BytesIO(data)).load()
