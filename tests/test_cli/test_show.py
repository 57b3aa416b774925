"""`fsbench ls methods`: every method with its paper, its hooks and its options."""

import json

import pytest
from support.cli import call

from pretrain import METHODS
from pretrain.method import HOOKS
from pretrain.recipes.recipe import ActingOrder

PAPERS = {
    **dict.fromkeys(("dsd", "fc", "lw", "rescale"), "reinitialization study"),
    **dict.fromkeys(("welsr", "wels", "kels"), "Taha et al. 2021"),
    **dict.fromkeys(("swr", "swr_reanchor", "l2", "l2_init"), "Soft Weight Rescaling"),
    **dict.fromkeys(("shrink_perturb", "head_reset", "full_reset"), "Soft Weight Rescaling"),
    "nio": "NIO",
    "gradinit": "Zhu et al. 2021",
    "weight_compander": "Weight Compander (Cakaj et al.)",
    "powerprop": "Schwarz et al. 2021",
    "weight_norm": "Salimans and Kingma 2016",
    "imp": "Frankle & Carbin 2019",
    "llf": "Zhou et al. 2022",
    "maml": "Finn et al. 2017",
    "anil": "Raghu et al. 2020",
    "metasgd": "Li et al. 2017",
    "protonet": "Snell et al. 2017",
    **dict.fromkeys(("normal", "seal", "seal_freeze", "seal_reinit", "seal_reverse"), "SEAL"),
}
"""Every method of the papers that this suite re-runs, and what its row must name."""
CODES = {
    **dict.fromkeys(("welsr", "wels", "kels"), "ahmdtaha/knowledge_evolution"),
    **dict.fromkeys(("llf", "imp"), "hlml/fortuitous_forgetting"),
    **dict.fromkeys(
        ("swr", "swr_reanchor", "l2", "l2_init", "shrink_perturb", "head_reset", "full_reset"),
        "CILAB-RL-TEAM/soft-weight-rescaling",
    ),
    **dict.fromkeys(
        ("normal", "seal", "seal_freeze", "seal_reinit", "seal_reverse"), "amiiir-sarfi/SEAL"
    ),
    "nio": "HarborYuan/GradCosine",
    "gradinit": "zhuchen03/gradinit",
    **dict.fromkeys(("maml", "anil", "metasgd", "protonet"), "learnables/learn2learn"),
}
"""The public code that a method is held against; the others have none."""
OPTIONS = {
    "lw": {"repeats", "generations", "statistics", "rescale", "normalize", "reinit", "freeze_kept"},
    "swr": {"lambda_f", "lambda_c", "paper_literal"},
    "dsd": {"scope", "fill", "sparse_epochs"},
    "fc": {"scope"},
    "shrink_perturb": {"form", "fresh_draw", "lam"},
    "weight_compander": {"function", "learnable", "decay"},
    "nio": {"objective", "gamma"},
    "maml": {"way", "shots", "queries", "inner_lr", "steps", "first_order", "val_norm"},
}


@pytest.fixture
def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    assert call("ls", "methods", "--json") == 0
    return {row["method"]: row for row in json.loads(capsys.readouterr().out)}


def test_all_methods_are_listed_with_their_paper(listed: dict[str, dict[str, object]]) -> None:
    assert len(PAPERS) == 30
    assert PAPERS.keys() <= listed.keys()
    for name, paper in PAPERS.items():
        assert paper in str(listed[name]["source"]), name
        assert CODES.get(name, "") in str(listed[name]["source"]), name
        assert listed[name]["does"], name


def test_hooks_rank_and_neutral_settings_are_those_of_the_class(
    listed: dict[str, dict[str, object]],
) -> None:
    ranks = {rank.name.lower() for rank in ActingOrder}
    assert all(set(row["hooks"]) <= set(HOOKS) for row in listed.values())  # type: ignore[call-overload]
    assert all(row["hooks"] for name, row in listed.items() if name != "normal")
    assert {row["rank"] for row in listed.values()} == ranks
    assert listed["swr"]["hooks"] == ["setup", "after_step", "rewritten"]
    assert listed["swr"]["rank"] == "step"
    assert listed["swr"]["neutral"] == {"lam": 0.0}
    assert "always" in str(listed["rescale"]["neutral"])
    assert "paper/llf" in listed["llf"]["recipes"]  # type: ignore[operator]


@pytest.mark.parametrize("name", OPTIONS)
def test_options_carry_their_defaults(name: str, listed: dict[str, dict[str, object]]) -> None:
    options = listed[name]["options"]
    assert isinstance(options, dict)
    assert OPTIONS[name] <= options.keys()
    assert "name" not in options


@pytest.mark.parametrize("text", ["regime/", "REGIME/"])
def test_a_listing_of_the_names_that_contain_a_text(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call("ls", "recipes", text, "--json")
    names = [row["recipe"] for row in json.loads(capsys.readouterr().out)]
    assert names == [f"regime/{name}" for name in METHODS.names()]
