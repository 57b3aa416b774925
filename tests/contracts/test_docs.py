"""Documents cannot rot: tables, links, commands, transcripts and Python blocks are checked."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
import yaml
from support.readme import BLOCK, DOCUMENTS, DRAWN, TABLES, draw_shown, fill
from typer.main import get_command

from fsbench import __version__
from fsbench.cli.main import build
from pretrain.recipes.registry import recipe_names

ROOT = Path(__file__).resolve().parents[2]
PILOT = ROOT / "leaderboard" / "studies" / "pilot"
PAGES = (*DOCUMENTS, *(p.name for p in ROOT.glob("*.md") if p.name != "README.md"))
TEXTS = {page: (ROOT / page).read_text(encoding="utf8") for page in PAGES}
PROGRAM = re.compile(r"\$ (?:torchrun (?:-\S+ \d+ )*-m )?fsbench ")


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXTS[page], re.DOTALL | re.MULTILINE)


def split_commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a console block with the output that the page shows below it."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *output = part.splitlines()
        yield f"$ {command}", [line.rstrip() for line in output if line.strip()]


CONSOLE = [[*split_commands(text)] for page in PAGES for text in blocks(page, "console")]
COMMANDS = sorted({line for block in CONSOLE for line, _ in block})
TRANSCRIPTS = [block for block in CONSOLE if any(output for _, output in block)]
PYTHON = [page for page in PAGES if blocks(page, "python")]


def words(line: str) -> list[str]:
    return shlex.split(line[2:], comments=True)


def heading_anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def has_target(name: str) -> bool:
    makefile = (ROOT / "Makefile").read_text(encoding="utf8")
    return re.search(rf"^{name}:", makefile, re.MULTILINE) is not None


def load_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf8"))


def test_readme_is_short_and_every_table_stands_in_one_document() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 250
    assert sorted(n for page in DOCUMENTS for n in BLOCK.findall(TEXTS[page])) == sorted(TABLES)


@pytest.mark.parametrize("page", DOCUMENTS)
def test_tables_are_those_of_the_registries(page: str) -> None:
    assert fill(TEXTS[page]) == TEXTS[page], "run `make readme`"


@pytest.mark.parametrize("study", DRAWN, ids=lambda study: study.name)
def test_figures_of_a_study_are_those_that_it_shows(study: Path, tmp_path: Path) -> None:
    """By texts and the places of points: releases of matplotlib write lines differently."""
    draw_shown(study, tmp_path)
    folders = (study / "figures", tmp_path)
    stored, drawn = ({p.name: ElementTree.parse(p).getroot() for p in f.iterdir()} for f in folders)
    assert stored.keys() == drawn.keys(), "run `make readme`"
    for name, svg in stored.items():
        assert texts_of(svg) == texts_of(drawn[name]), "run `make readme`"
        assert points_of(svg) == pytest.approx(points_of(drawn[name]), abs=1), "run `make readme`"


def texts_of(svg: Element) -> list[str]:
    return sorted(filter(None, map(str.strip, svg.itertext())))


def points_of(svg: Element) -> list[float]:
    """Return where points and ticks are, in points of the picture."""
    used = [element.attrib for element in svg.iter("{http://www.w3.org/2000/svg}use")]
    return [float(attributes[key]) for attributes in used for key in "xy" if key in attributes]


@pytest.mark.parametrize("page", PAGES)
def test_links_blocks_and_references_of_a_page(page: str) -> None:
    home = (ROOT / page).parent
    for path, anchor in re.findall(r"\]\((?!\w+:)([^)#]*)(?:#([^)]*))?\)", TEXTS[page]):
        target = (home / path).resolve() if path else ROOT / page
        assert target.exists(), f"{page} links to {path}"
        if anchor:
            assert anchor in heading_anchors(target.read_text(encoding="utf8")), f"#{anchor}"
    assert all(isinstance(yaml.safe_load(text), dict) for text in blocks(page, "yaml"))
    outside = r"\b(design|methods|protocol|peers|style|language)\.md\b|\[00\d\]|/work/|/root/"
    assert re.search(outside, TEXTS[page]) is None


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_options_files_and_targets_exist(line: str) -> None:
    program, *arguments = (word for word in words(line) if not word.startswith("PYTHONPATH="))
    if PROGRAM.match(line):
        arguments = words(line)[words(line).index("fsbench") + 1 :]
        command = get_command(build())
        while arguments and arguments[0] in getattr(command, "commands", {}):
            command = command.commands[arguments.pop(0)]  # type: ignore[attr-defined]
        assert not getattr(command, "commands", {}), f"no such command: {line}"
        flags = {flag for parameter in command.params for flag in parameter.opts}
        assert {word for word in arguments if word.startswith("-")} <= flags, line
        is_recipe = re.compile(r"(paper|full|pilot|regime|toy)/\w+").fullmatch
        assert set(filter(is_recipe, arguments)) <= set(recipe_names()), line
    elif program == "make":
        assert all(has_target(word) for word in arguments if "=" not in word), line
    elif program == "python" and arguments[0].endswith(".py"):
        assert (ROOT / arguments[0]).is_file(), line
    elif program == "python" and arguments[1].startswith("studies."):
        assert (ROOT / "tests" / f"{arguments[1].replace('.', '/')}.py").is_file(), line
    else:
        others = {"python", "pip", "cd", "git", "ruff", "mypy", "pytest", "ssh-keygen", "export"}
        assert program in others | {"ray", "squeue", "less"}, line


def test_every_command_is_in_a_document() -> None:
    text = "\n".join(TEXTS.values())
    missing = [name for name in get_command(build()).commands if f"fsbench {name}" not in text]  # type: ignore[attr-defined]
    assert missing == []


@pytest.mark.parametrize("block", TRANSCRIPTS, ids=lambda block: block[0][0][2:60])
def test_transcripts_show_the_output_of_the_program(
    block: list[tuple[str, list[str]]], tmp_path: Path
) -> None:
    environment = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **environment, "FSBENCH_CACHE": str(tmp_path / "cache")}
    for line, output in block:
        assert PROGRAM.match(line), f"{line} shows output and is not run"
        command = [sys.executable, "-m", *words(line)]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert [text.rstrip() for text in run.stdout.splitlines() if text.strip()] == output


@pytest.mark.parametrize("page", PYTHON)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaderboard").symlink_to(ROOT / "leaderboard")  # blocks read committed entries
    namespace: dict[str, object] = {}
    for number, code in enumerate(blocks(page, "python"), start=1):
        exec(compile(code, f"{page}, block {number}", "exec"), namespace)


def test_citation_names_the_version_of_the_package() -> None:
    citation = load_yaml("CITATION.cff")
    assert citation["version"] == __version__
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    assert f"## {__version__}" in TEXTS["CHANGELOG.md"]


@pytest.mark.parametrize("name", ["ci", "release", "weekly"])
def test_workflows_call_targets_that_exist(name: str) -> None:
    jobs = load_yaml(f".github/workflows/{name}.yml")["jobs"]
    commands = [step.get("run", "") for job in jobs.values() for step in job["steps"]]
    targets = {line.split()[1] for line in commands if line.startswith("make ")}
    assert all(map(has_target, targets))
    if name == "ci":
        assert targets == {"lint", "types", "test", "wheel-test"}
        assert jobs["tests"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]


def test_only_a_tag_of_the_stated_version_is_published() -> None:
    jobs = load_yaml(".github/workflows/release.yml")["jobs"]
    publish = jobs["publish"]
    assert (publish["needs"], publish["if"]) == ("build", "github.ref_type == 'tag'")
    (script,) = [step["run"] for step in jobs["build"]["steps"] if "tag" in step.get("name", "")]
    for version, returncode in ((__version__, 0), ("9.9.9", 1)):
        env = os.environ | {"GITHUB_REF_NAME": f"v{version}"}
        assert subprocess.run(["bash", "-c", script], cwd=ROOT, env=env).returncode == returncode
