"""Declarations: the same from JSON, TOML and YAML; gaps and hostile files are named."""

import json
from pathlib import Path

import pytest
import yaml

from fsbench.core.errors import UsageError, ValidationFailed
from leaderboard.declaration import find_declaration, read_declaration

YAML = """name: seal-r50
authors: A. Author
link: https://example.org
license: MIT
pretraining_data: tinyimagenet
targets_seen: none
statement: One run.
"""
VALUES = {**yaml.safe_load(YAML), "pretraining_data": ["tinyimagenet"], "targets_seen": []}
TOML = "\n".join(f"{name} = {json.dumps(value)}" for name, value in VALUES.items())


def with_fields(**changes: object) -> str:
    return json.dumps(VALUES | changes)


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
    shown = str(caught.value)
    assert shown.startswith(f"{file}: name: String should match pattern")
    assert "; authors: Input should be a valid string\n  fix: correct these keys" in shown
    assert "--" not in shown


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.yaml", "a: &a [x]\nname: *a\n", "alias"),
        ("d.yaml", f"{BOMB}\nname: *a11\n", "alias"),
        ("d.yaml", "name: x\nname: y\n", "duplicate key"),
        ("d.yaml", "name: !!python/object/apply:os.system [id]\n", "cannot be read"),
        ("d.yaml", "[" * 60_000, "recursion"),
        ("d.yaml", "a: [1", "cannot be read"),
        ("d.yaml", "just text", "no mapping of fields"),
        ("d.toml", 'name = "x"\nname = "y"\n', "cannot be read"),
        ("d.toml", "name = ", "cannot be read"),
        ("d.toml", "#" * 70_000, "larger than"),
        ("d.json", '{"name": "x", "name": "y"}', "duplicate key"),
        ("d.json", "[" * 200_000, "no readable JSON"),
        ("d.json", "{", "no readable JSON"),
        ("d.json", "[1]", "no mapping of fields"),
        ("d.json", '{"name": NaN}', "not finite"),
        ("d.json", '{"name": "\\ud800"}', "no readable JSON"),
        ("d.json", '{"name": ' + "1" * 10_000 + "}", "no readable JSON"),
        ("d.json", with_fields(author="A"), "d.json: unknown key 'author', use 'authors'"),
        ("d.json", with_fields(name="a/b"), "name: String should match"),
        ("d.json", with_fields(authors="\x1b[31mred"), "authors: "),
        ("d.json", with_fields(authors="x" * 5000), "authors: "),
        ("d.json", with_fields(pretraining_data=3), "pretraining_data: "),
    ],
)
def test_files_that_hurt_are_refused_and_named(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValidationFailed) as caught:
        read_declaration(tmp_path / name)
    shown = str(caught.value)
    assert name in shown
    assert message in shown
    assert len(shown) < 5000
