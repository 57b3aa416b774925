"""`fsbench ls methods`: every method with its paper, its hooks and its options."""

import pytest
from support.cli import CommandLine

from pretrain import METHODS
from pretrain.method import HOOKS
from pretrain.recipes.recipe import ActingOrder

SEAL = ("SEAL", "amiiir-sarfi/SEAL")
SWR = ("Soft Weight Rescaling", "CILAB-RL-TEAM/soft-weight-rescaling")
EVOLUTION = ("Taha et al. 2021", "ahmdtaha/knowledge_evolution")
L2L = "learnables/learn2learn"
SOURCES = {
    **dict.fromkeys(("dsd", "fc", "lw", "rescale"), ("reinitialization study", "")),
    **dict.fromkeys(("welsr", "wels", "kels"), EVOLUTION),
    **dict.fromkeys(("swr", "swr_reanchor", "l2", "l2_init", "shrink_perturb"), SWR),
    **dict.fromkeys(("head_reset", "full_reset"), SWR),
    **dict.fromkeys(("normal", "seal", "seal_freeze", "seal_reinit", "seal_reverse"), SEAL),
    "nio": ("NIO", "HarborYuan/GradCosine"),
    "gradinit": ("Zhu et al. 2021", "zhuchen03/gradinit"),
    "weight_compander": ("Weight Compander (Cakaj et al.)", ""),
    "powerprop": ("Schwarz et al. 2021", ""),
    "weight_norm": ("Salimans and Kingma 2016", ""),
    "imp": ("Frankle & Carbin 2019", "hlml/fortuitous_forgetting"),
    "llf": ("Zhou et al. 2022", "hlml/fortuitous_forgetting"),
    "maml": ("Finn et al. 2017", L2L),
    "anil": ("Raghu et al. 2020", L2L),
    "metasgd": ("Li et al. 2017", L2L),
    "protonet": ("Snell et al. 2017", L2L),
}
"""Method -> the paper that its row must name, and the public code that it is held against."""
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
def listed(cli: CommandLine) -> dict[str, dict[str, object]]:
    return {row["method"]: row for row in cli.json("ls", "methods")}


def test_all_methods_are_listed_with_their_paper(listed: dict[str, dict[str, object]]) -> None:
    assert len(SOURCES) == 30
    for name, (paper, code) in SOURCES.items():
        assert paper in str(listed[name]["source"]), name
        assert code in str(listed[name]["source"]), name
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


def test_options_carry_their_defaults(listed: dict[str, dict[str, object]]) -> None:
    for name, expected in OPTIONS.items():
        options = listed[name]["options"]
        assert isinstance(options, dict)
        assert expected <= options.keys() - {"name"}


def test_a_listing_of_the_names_that_contain_a_text(cli: CommandLine) -> None:
    names = [row["recipe"] for row in cli.json("ls", "recipes", "REGIME/")]
    assert names == [f"regime/{name}" for name in METHODS.names()]
