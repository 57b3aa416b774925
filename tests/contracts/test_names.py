"""The code base has the names and files that documents and comments mention."""

import builtins
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest
from support.cases import read_cases
from support.imports import PACKAGES, ROOT
from support.readme import DOCUMENTS

from pretrain.recipes.registry import recipe_names

PAGES = {*DOCUMENTS, *(path.name for path in ROOT.glob("*.md"))} - {"CHANGELOG.md"}
"""Documents of what is, not of what was."""
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]+)`")
PYTHON_FILE = re.compile(r"(?<![\w./*<>-])[\w./*<>-]*\w\.py\b")
"""A Python file, with or without folders; `py:FILE:NAME` names it too."""
EXAMPLE = re.compile(r"<!-- file: (\S+) -->|\bas `(\w+\.py)` in `")
"""Says that the page itself shows the file."""
PATH = re.compile(r"\.?\w[\w.<>*-]*(/[\w.<>*-]*)+")
DATA_FILE = re.compile(r"[\w.-]+\.(?:json|jsonl|yaml|yml|csv|txt|toml|md)")
NAME = re.compile(
    r"[A-Za-z_][\w.]*\(.*\)"  # a call
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+"
    r"|[A-Z]\w*[a-z]\w*|[a-z]\w*_\w+"  # a class, or an underscore: `normal` is no name
)
PLACEHOLDER = re.compile(r"NAME(-N)?|METHOD|<\w+>")

FOREIGN_FILES = {"finetune.py", "validate.py", "datasets/*_few_shot.py", "evaluation/finetune.py"}
FOREIGN_FILES |= {"evaluation/finetune_resnet18.py", "_name.py"}
"""Files of the official code of others, and a pattern."""
FOREIGN_FOLDERS = {"timm", "torchvision", "cifar"} | {"datasets", "evaluation", "logs"}
FOREIGN_FOLDERS |= {"Class", "results", ".eval_results"}
"""First folders of references, of the official code of others, and of files of the user."""
LAYOUTS = "fsbench/data/README.md"
"""The page whose paths are those of data sets, but for paths below a package."""
FOREIGN_NAMES = {"save_pretrained", "save_for_hf", "file_name", "metadata.jsonl"}
FOREIGN_NAMES |= {"entries_by_name"}
"""Functions of transformers and timm, parts of a data set on the hub, and examples."""
FOREIGN_PACKAGES = ("torch", "timm", "torchvision", "transformers")
GROUP = re.compile(r"fsbench\.(methods|heads|datasets|pretraining_datasets|sources|analyses)")
"""Groups of entry points, which are no modules."""


def find_dead(page: str, text: str) -> list[str]:
    """Return the Python files that a page mentions, and the paths, files and names that it shows in
    backquotes, that do not exist. page: path below the root of the repository."""
    prose, folders = FENCE.sub("", text), (ROOT, (ROOT / page).parent)
    shown = {name for match in EXAMPLE.findall(text) for name in match}
    mentioned = re.sub(r"\]\([^)]*\)|(?<!\.)\bpy:", "", text)
    files = {*PYTHON_FILE.findall(mentioned)} - shown - FOREIGN_FILES
    dead = {name for name in files if not exists_as_file(name)}
    for quoted in set(QUOTED.findall(prose)):
        if PATH.fullmatch(quoted):
            first = quoted.partition("/")[0]
            is_foreign = (page == LAYOUTS and first not in PACKAGES) or first in FOREIGN_FOLDERS
            is_dead = not is_foreign and not exists(quoted, *folders)
        elif quoted in FOREIGN_NAMES:
            is_dead = False
        elif DATA_FILE.fullmatch(quoted):
            is_file = any((folder / quoted).is_file() for folder in folders)
            is_dead = not is_file and quoted not in "\n".join([*FENCE.findall(text), read_code()])
        else:
            is_dead = is_name(quoted) and not has_name(quoted)
        dead |= {quoted} if is_dead else set()
    return sorted(dead)


@cache
def list_python_files() -> tuple[str, ...]:
    paths = (path for folder in (*PACKAGES, "tests") for path in (ROOT / folder).rglob("*.py"))
    return tuple(path.relative_to(ROOT).as_posix() for path in paths)


def exists_as_file(name: str) -> bool:
    """Return whether a Python file of this path, or of a path that ends so, exists."""
    pattern = PLACEHOLDER.sub("*", name.removeprefix("./"))
    return any(fnmatchcase(f"/{path}", f"*/{pattern}") for path in list_python_files())


def exists(path: str, *folders: Path) -> bool:
    """Return whether a path exists below some folder, or is the name of a recipe."""
    pattern = PLACEHOLDER.sub("*", path.rstrip("/"))
    if any(any(folder.glob(pattern)) for folder in folders):
        return True
    recipe = pattern.replace("...", "*") if "/" in pattern else f"{pattern}/*"
    return any(fnmatchcase(name, recipe) for name in recipe_names())


@cache
def read_code() -> str:
    """Return the text of the packages and of the files beside them, without documents."""
    paths = [ROOT / "Makefile", ROOT / "pyproject.toml"]
    for package in PACKAGES:
        paths += [p for p in (ROOT / package).rglob("*.*") if p.suffix in {".py", ".yaml", ".j2"}]
    return "\n".join(path.read_text(encoding="utf8") for path in paths)


@cache
def read_vocabulary() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", read_code())) | {*dir(builtins)}


def is_name(text: str) -> bool:
    """Return whether a text looks like a call, a dotted name, a class or a name with underscore."""
    others = GROUP.fullmatch(text) or PLACEHOLDER.search(text) or PYTHON_FILE.fullmatch(text)
    return not others and NAME.fullmatch(text) is not None


def has_name(text: str) -> bool:
    """Return whether the code has all parts of a name, and the parameters of a call."""
    name, _, arguments = text.partition("(")
    if name.split(".")[0] in FOREIGN_PACKAGES and "." in name:
        try:
            return resolve_name(name) is not None
        except (ImportError, AttributeError):
            return False
    parameters = [part for part in re.split(r"[,)] *", arguments) if part.isidentifier()]
    names = {*name.split("."), *parameters, *re.findall(r"(\w+)=", arguments)}
    return names <= read_vocabulary()


def find_dead_comments(text: str) -> list[str]:
    """Return `folder/file.py` in comments and docstrings, of folders of ours, that do not exist."""
    folders = {Path(path).parent.name for path in list_python_files()}
    return sorted(
        name
        for name in set(PYTHON_FILE.findall(text))
        if name.count("/") and Path(name).parts[-2] in folders and not exists_as_file(name)
    )


@pytest.mark.parametrize("page", sorted(PAGES))
def test_what_a_page_names_exists(page: str) -> None:
    dead = find_dead(page, (ROOT / page).read_text(encoding="utf8"))
    assert not dead, f"{page} names what does not exist: {', '.join(dead)}"


def test_comments_name_modules_that_exist() -> None:
    codes = {path: (ROOT / path).read_text(encoding="utf8") for path in list_python_files()}
    dead = {path: missing for path, c in codes.items() if (missing := find_dead_comments(c))}
    assert dead.keys() <= {"tests/contracts/test_names.py"}, dead


@pytest.mark.parametrize(("present", "dead"), read_cases("pages")["names"])
def test_a_name_that_does_not_exist_is_reported(present: str, dead: str) -> None:
    assert find_dead("README.md", f"`{present}`, `{dead}`") == [dead]
    text = "<!-- file: power.py --> --adapt py:power.py:mean, --adapt py:nobody.py:mean"
    assert find_dead("README.md", text) == ["nobody.py"]
