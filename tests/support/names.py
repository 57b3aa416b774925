"""Names and files that documents mention, and whether the code base has them."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from support.imports import PACKAGES, ROOT

from pretrain.recipes.registry import recipe_names

FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]+)`")
PYTHON_FILE = re.compile(r"(?<![\w./*<>-])[\w./*<>-]*\w\.py\b")
"""A Python file, with or without folders; `py:FILE:NAME` names it too."""
EXAMPLE = re.compile(r"<!-- file: (\S+) -->|\bas `(\w+\.py)` in `")
"""Says that the page itself shows the file."""
CALL = re.compile(r"([A-Za-z_][\w.]*)\((.*)\)")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
SINGLE = re.compile(r"[A-Z]\w*[a-z]\w*|[a-z]\w*_\w+")
"""A class, or a name with an underscore: words such as `normal` are no names."""
DATA_FILE = re.compile(r"[\w.-]+\.(?:json|jsonl|yaml|yml|csv|txt|toml|md)")
PLACEHOLDER = re.compile(r"NAME(-N)?|METHOD|<\w+>")

FOREIGN_FILES = {
    "finetune.py": "CD-FSL benchmark",
    "datasets/*_few_shot.py": "CD-FSL benchmark and STARTUP",
    "evaluation/finetune.py": "STARTUP",
    "evaluation/finetune_resnet18.py": "affine tuning",
    "validate.py": "timm",
}
"""Files of the official code of others."""
FOREIGN_FOLDERS = {
    "timm": "references of models",
    "torchvision": "references of models",
    "cifar": "architectures, by name",
    "Class": "a data set of the user",
    "datasets": "CD-FSL benchmark and STARTUP",
    "evaluation": "STARTUP",
    "logs": "official code of the heads",
    "results": "results of the user",
    ".eval_results": "a repository of the hub",
}
"""First folders of paths that are not of this repository."""
LAYOUTS = "fsbench/data/README.md"
"""The page whose paths are those of data sets, but for paths below a package."""
FOREIGN_NAMES = {
    "save_pretrained": "transformers",
    "save_for_hf": "timm",
    "file_name": "column of a data set on the hub",
    "metadata.jsonl": "file of a data set on the hub",
    "net.json": "example of a file of the user",
    "entries_by_name": "example of a name",
}
FOREIGN_PACKAGES = ("torch", "timm", "torchvision", "transformers")
GROUPS = {
    f"fsbench.{kind}"
    for kind in ("methods", "heads", "datasets", "pretraining_datasets", "sources", "analyses")
}
"""Groups of entry points, which are no modules."""


class Page(NamedTuple):
    """A document. path: relative to the root of the repository."""

    path: str
    text: str

    @property
    def home(self) -> Path:
        return (ROOT / self.path).parent

    @property
    def blocks(self) -> str:
        """What it shows as code."""
        return "\n".join(FENCE.findall(self.text))

    @property
    def quoted(self) -> list[str]:
        """What stands in backquotes, but for blocks of code."""
        return sorted(set(QUOTED.findall(FENCE.sub("", self.text))))


@cache
def python_files() -> tuple[str, ...]:
    folders = (*PACKAGES, "tests")
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple(path.relative_to(ROOT).as_posix() for path in paths)


def exists_as_file(name: str) -> bool:
    """Return whether a Python file of this path, or of a path that ends so, exists."""
    pattern = PLACEHOLDER.sub("*", name.removeprefix("./"))
    return any(fnmatchcase(f"/{path}", f"*/{pattern}") for path in python_files())


def dead_python_files(page: Page) -> list[str]:
    """Return the Python files that a page mentions and nobody has."""
    shown = {name for match in EXAMPLE.findall(page.text) for name in match if name}
    text = re.sub(r"(?<!\.)\bpy:", "", page.text)
    mentioned = set(PYTHON_FILE.findall(re.sub(r"\]\([^)]*\)", "", text))) - shown
    mentioned -= FOREIGN_FILES.keys() | {"_name.py"}
    return sorted(name for name in mentioned if not exists_as_file(name))


def dead_paths(page: Page) -> list[str]:
    """Return the paths in backquotes that are neither of ours nor known to be foreign."""
    paths = [name for name in page.quoted if re.fullmatch(r"\.?\w[\w.<>*-]*(/[\w.<>*-]*)+", name)]
    return [path for path in paths if not is_foreign(path, page) and not exists(path, page)]


def is_foreign(path: str, page: Page) -> bool:
    """Return whether a path is of a data set, of the official code of others, or of the user."""
    first = path.partition("/")[0]
    return first in FOREIGN_FOLDERS or (page.path == LAYOUTS and first not in PACKAGES)


def exists(path: str, page: Page) -> bool:
    """Return whether a path exists below the root or the page, or is the name of a recipe."""
    pattern = PLACEHOLDER.sub("*", path.rstrip("/"))
    if any(any(home.glob(pattern)) for home in (ROOT, page.home)):
        return True
    recipe = pattern.replace("...", "*") if "/" in pattern else f"{pattern}/*"
    return any(fnmatchcase(name, recipe) for name in recipe_names())


def dead_data_files(page: Page) -> list[str]:
    """Return the files in backquotes, without a folder, that neither exist nor occur in code."""
    names = [name for name in page.quoted if DATA_FILE.fullmatch(name)]
    return [
        name
        for name in names
        if name not in FOREIGN_NAMES
        and not any((home / name).is_file() for home in (ROOT, page.home))
        and name not in page.blocks
        and not any(name in text for text in texts())
    ]


@cache
def vocabulary() -> frozenset[str]:
    """Names that the code has: defined, imported or used, and words of its texts."""
    words: set[str] = set(dir(builtins))
    for path in python_files():
        if not path.startswith("tests/"):
            words |= set(words_of(ast.parse((ROOT / path).read_text(encoding="utf8"))))
    return frozenset(words)


@cache
def texts() -> frozenset[str]:
    """Texts in the code that are no docstrings, and texts of files beside it."""
    trees = (
        ast.parse((ROOT / path).read_text(encoding="utf8"))
        for path in python_files()
        if not path.startswith("tests/")
    )
    patterns = ("*.yaml", "*.yml", "*.j2", "Makefile", "pyproject.toml")
    beside = {
        path.read_text(encoding="utf8")
        for package in PACKAGES
        for pattern in patterns
        for path in (ROOT / package).rglob(pattern)
    }
    return frozenset(text for tree in trees for text in constants(tree)) | beside


def constants(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module that are no docstrings."""
    docstrings = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield node.value


def words_of(tree: ast.AST) -> Iterator[str]:
    """Yield the identifiers of a module, and the words of its texts."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(value := getattr(node, field, None), str):
                yield from value.split(".")
    for text in constants(tree):
        yield from re.findall(r"\w+", text)


def dead_names(page: Page) -> list[str]:
    """Return the names in backquotes that look like Python and that the code does not have."""
    return [name for name in page.quoted if is_name(name) and not has_name(name)]


def is_name(text: str) -> bool:
    """Return whether a text looks like a call, a dotted name, a class or a name with underscore."""
    if text in FOREIGN_NAMES or text in GROUPS or PLACEHOLDER.search(text):
        return False
    if DATA_FILE.fullmatch(text) or PYTHON_FILE.fullmatch(text):
        return False
    return any(pattern.fullmatch(text) for pattern in (CALL, DOTTED, SINGLE))


def has_name(text: str) -> bool:
    call = CALL.fullmatch(text)
    name, arguments = call.groups() if call else (text, "")
    keywords = re.findall(r"(\w+)=", arguments)
    if name.split(".")[0] in (*PACKAGES, *FOREIGN_PACKAGES) and "." in name:
        return is_importable(name, keywords)
    parameters = [part for part in re.split(r", *", arguments) if part.isidentifier()]
    if not set(name.split(".")) <= vocabulary():
        return False
    return not call or takes(name.rpartition(".")[2], [*parameters, *keywords])


def is_importable(name: str, keywords: Iterable[str]) -> bool:
    """Return whether an object can be imported, and is called with these keywords."""
    try:
        value = resolve_name(name)
    except (ImportError, AttributeError):
        return False
    parameters = signature(value).parameters if keywords else {}
    is_open = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    return is_open or set(keywords) <= set(parameters)


@cache
def functions() -> dict[str, list[frozenset[str]]]:
    """Name of a function -> the parameters of each definition; '*' stands for any."""
    definitions: dict[str, list[frozenset[str]]] = {}
    for path in python_files():
        if path.startswith("tests/"):
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                a = node.args
                names = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
                names |= {"*"} if a.kwarg else set()
                definitions.setdefault(node.name, []).append(frozenset(names))
    return definitions


def takes(name: str, parameters: Iterable[str]) -> bool:
    """Return whether a function of this name has all these parameters."""
    definitions = functions().get(name, [])
    return any("*" in names or set(parameters) <= names for names in definitions)


def dead_comment_paths(code: str) -> list[str]:
    """Return `folder/file.py` in comments and docstrings, of folders of ours, that do not exist."""
    folders = {Path(path).parent.name for path in python_files()}
    return sorted(
        name
        for name in set(PYTHON_FILE.findall(code))
        if name.count("/") and Path(name).parts[-2] in folders and not exists_as_file(name)
    )
