"""fsbench.pretrain: recipes by name, file and override; recipe files of strangers are data."""

import json
from pathlib import Path

import pytest
from support import fakes

import fsbench
from fsbench.api.pretrain import read_recipe, resolve_recipe
from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from pretrain.recipes import registry

SMALL = {"width": 2, "plan": {"rounds": 1, "epochs": 1, "epoch_images": 64}}


@pytest.fixture
def finished(tmp_path: Path) -> fsbench.Run:
    return fsbench.pretrain("toy/normal", seed=3, output=tmp_path / "runs", progress=False, **SMALL)


def test_a_run_gives_its_backbone_and_starts_again_from_its_recipe_file(
    finished: fsbench.Run, tmp_path: Path
) -> None:
    assert finished.folder == tmp_path / "runs" / "toy-normal-s3"
    assert finished.recipe.plan.rounds == 1
    assert finished.backbone("cpu").facts.weights_hash == finished.record["weights_hash"]
    again = fsbench.pretrain(
        finished.folder / "recipe.json", output=tmp_path / "again", progress=False
    )
    assert again.record["weights_hash"] == finished.record["weights_hash"]
    assert fsbench.Run.load(finished.folder).record == finished.record


def test_every_file_with_a_recipe_is_read(finished: fsbench.Run, tmp_path: Path) -> None:
    (tmp_path / "plain.json").write_text(finished.recipe.model_dump_json(), "utf8")
    fakes.write(tmp_path, backbone=finished.backbone("cpu").facts)
    (entry,) = tmp_path.rglob("entry.json")
    run_files = (finished.folder / name for name in ("recipe.json", "run.json"))
    for path in (*run_files, tmp_path / "plain.json", entry):
        assert read_recipe(path) == finished.recipe


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"source": "py:os:system"}, UsageError, "names code to run: py:os:system"),
        ({"architecture": " py:os:system"}, UsageError, "names code to run"),
        ({"methods": [{"name": "py:os:system"}]}, UsageError, "names code to run"),
        ({"unknown": 1}, ValidationFailed, "is not a recipe: unknown"),
        ({"lr": -1}, ValidationFailed, "lr"),
    ],
)
def test_files_of_strangers_run_no_code(
    change: dict[str, object], error: type[Exception], match: str, tmp_path: Path
) -> None:
    fields = registry.load_recipe("toy/normal").model_dump(mode="json") | change
    (tmp_path / "recipe.json").write_text(json.dumps(fields))
    with pytest.raises(error, match=match):
        resolve_recipe(tmp_path / "recipe.json")


@pytest.mark.parametrize("text", ["", "[]", '"x"', "{", '{"recipe": {}}', "[" * 10_000])
def test_broken_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text(text)
    with pytest.raises(ValidationFailed):
        resolve_recipe(str(tmp_path / "recipe.json"))


def test_fields_are_set_once() -> None:
    with pytest.raises(UsageError, match=r"plan\.rounds is set twice"):
        resolve_recipe("toy/normal", plan={"rounds": 2}, set=["plan.rounds=3"])
    nested = resolve_recipe("toy/normal", plan={"rounds": 3})
    assert nested == resolve_recipe("toy/normal", **{"plan.rounds": 3})
    assert nested == resolve_recipe("toy/normal", set=["plan.rounds=3"])


@pytest.mark.parametrize(
    ("keyword", "meant"), [("sed", "seed"), ("thread", "threads"), ("planx", "plan"), ("lrr", "lr")]
)
def test_a_misspelled_keyword_names_options_and_fields(keyword: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"option or recipe field '{keyword}'") as error:
        fsbench.pretrain("toy/normal", **{keyword: 1})
    assert f"'{meant}'" in error.value.fix
