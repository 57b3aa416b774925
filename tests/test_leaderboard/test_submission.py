"""Declarations: the same from JSON, TOML and YAML; gaps are named."""

import json
from pathlib import Path

import pytest

from fsbench.core.errors import UsageError, ValidationFailed
from leaderboard.intake.submission import find_declaration, read_declaration

VALUES = {
    "name": "seal-r50",
    "authors": "A. Author",
    "link": "https://example.org",
    "license": "MIT",
    "pretraining_data": ["tinyimagenet"],
    "targets_seen": [],
    "statement": "One run.",
}
YAML = """name: seal-r50
authors: A. Author
link: https://example.org
license: MIT
pretraining_data: tinyimagenet
targets_seen: none
statement: One run.
"""
TOML = "\n".join(f"{name} = {json.dumps(value)}" for name, value in VALUES.items())


@pytest.mark.parametrize(
    ("name", "text"),
    [("d.json", json.dumps(VALUES)), ("d.yaml", YAML), ("d.yml", YAML), ("d.toml", TOML)],
)
def test_every_format_says_the_same(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    declared = read_declaration(tmp_path / name)
    assert declared == read_declaration(VALUES)
    assert declared.pretraining_data == ("tinyimagenet",)
    assert declared.targets_seen == ()


def test_a_name_beats_that_of_the_file(tmp_path: Path) -> None:
    assert find_declaration(tmp_path) is None
    (tmp_path / "declaration.yaml").write_text(YAML)
    path = find_declaration(tmp_path)
    assert read_declaration(path, "other").name == "other"


def test_a_misspelled_key_has_its_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "decl.json").write_text(json.dumps(VALUES | {"author": "A"}))
    with pytest.raises(ValidationFailed, match=r"decl.json: unknown key 'author', use 'authors'"):
        read_declaration(tmp_path / "decl.json")


def test_errors_name_the_keys_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "decl.yaml"
    file.write_text(YAML.replace("license: MIT", "license:").replace("authors: A. Author\n", ""))
    with pytest.raises(UsageError, match=r"decl.yaml lacks authors, license\n  fix: fill in these"):
        read_declaration(file)
    with pytest.raises(UsageError, match="the declaration lacks name, authors, link, license, pre"):
        read_declaration(None)
    file.write_text(YAML.replace("authors: A. Author", "authors: 3").replace("seal-r50", "a/b"))
    with pytest.raises(ValidationFailed) as caught:
        read_declaration(file)
    assert str(caught.value).startswith(f"{file}: name: String should match pattern")
    assert "; authors: Input should be a valid string\n  fix: correct these keys" in str(
        caught.value
    )
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.json", "[1]"),
        ("d.json", "{"),
        ("d.json", json.dumps(VALUES | {"extra": 1})),
        ("d.json", json.dumps(VALUES | {"name": "a/b"})),
        ("d.json", json.dumps(VALUES | {"authors": "\x1b[31mred"})),
        ("d.json", json.dumps(VALUES | {"authors": "x" * 5000})),
        ("d.json", json.dumps(VALUES | {"pretraining_data": 3})),
        ("d.toml", "name = "),
        ("d.yaml", "!!python/object/apply:os.system ['true']"),
        ("d.yaml", "a: [1"),
        ("d.yaml", "just text"),
        ("d.yaml", "a: &a [x]\nb: [*a, *a]\nname: *a"),
    ],
)
def test_bad_files_are_refused_and_named(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((ValidationFailed, UsageError)) as caught:
        read_declaration(tmp_path / name)
    assert name in str(caught.value) or "lacks" in str(caught.value)


def test_a_yaml_alias_bomb_stays_small(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    (tmp_path / "d.yaml").write_text("\n".join(lines) + "\nname: *a11\n")
    with pytest.raises((ValidationFailed, UsageError)) as caught:
        read_declaration(tmp_path / "d.yaml")
    assert len(str(caught.value)) < 5000
