"""`fsbench ls methods`: every method with its paper, its hooks and its options."""

from support.cli import CommandLine

from pretrain import METHODS
from pretrain.method import HOOKS
from pretrain.recipes.recipe import ActingOrder


def test_all_methods_are_listed_with_paper_hooks_and_options(cli: CommandLine) -> None:
    listed = {row["method"]: row for row in cli.json("ls", "methods")}
    assert len(listed) == 31
    for name, method in METHODS.items():
        row = listed[name]
        assert row["source"] == method.SOURCE
        assert row["does"]
        assert set(row["hooks"]) <= set(HOOKS)
        assert row["hooks"] or name == "normal"
        assert row["options"].keys() == method.model_fields.keys()
    assert {row["rank"] for row in listed.values()} == {rank.name.lower() for rank in ActingOrder}
    assert listed["swr"]["hooks"] == ["setup", "after_step", "rewritten"]
    assert (listed["swr"]["rank"], listed["swr"]["neutral"]) == ("step", {"lam": 0.0})
    assert "always" in listed["rescale"]["neutral"]
    assert "paper/llf" in listed["llf"]["recipes"]


def test_a_listing_of_the_names_that_contain_a_text(cli: CommandLine) -> None:
    names = [row["recipe"] for row in cli.json("ls", "recipes", "REGIME/")]
    assert names == [f"regime/{name}" for name in METHODS.names()]
