"""Names and files that documents mention, and whether the code base has them."""

import builtins
import re
from fnmatch import fnmatchcase
from functools import cache
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
        and name not in page.blocks + code()
    ]


@cache
def code() -> str:
    """The text of the packages and of the files beside them, without documents."""
    paths = [ROOT / "Makefile", ROOT / "pyproject.toml"]
    for package in PACKAGES:
        paths += [p for p in (ROOT / package).rglob("*.*") if p.suffix in {".py", ".yaml", ".j2"}]
    return "\n".join(path.read_text(encoding="utf8") for path in paths)


@cache
def vocabulary() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", code())) | {*dir(builtins)}


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
    """Return whether the code has all parts of a name, and the parameters of a call."""
    name, _, arguments = text.partition("(")
    if name.split(".")[0] in FOREIGN_PACKAGES and "." in name:
        try:
            return resolve_name(name) is not None
        except (ImportError, AttributeError):
            return False
    parameters = [part for part in re.split(r"[,)] *", arguments) if part.isidentifier()]
    return {*name.split("."), *parameters, *re.findall(r"(\w+)=", arguments)} <= vocabulary()


def dead_comment_paths(text: str) -> list[str]:
    """Return `folder/file.py` in comments and docstrings, of folders of ours, that do not exist."""
    folders = {Path(path).parent.name for path in python_files()}
    return sorted(
        name
        for name in set(PYTHON_FILE.findall(text))
        if name.count("/") and Path(name).parts[-2] in folders and not exists_as_file(name)
    )
