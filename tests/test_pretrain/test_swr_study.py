"""The soft-weight-rescaling paper's rows: protocol, coefficients and figures as printed."""

from support.pretrain import drop_epochs

from pretrain.recipes import registry, swr_study
from pretrain.recipes.plan import Stage


def test_decay_is_a_tenth_at_epochs_100_and_150() -> None:
    assert drop_epochs(registry.load_recipe("paper/swr_decay")) == (100, 150)
    assert drop_epochs(registry.load_recipe("paper/swr")) == ()


def test_scenario_rows_train_100_epochs_a_stage() -> None:
    warm = registry.load_recipe("paper/shrink_perturb_warm_start")
    assert warm.plan.stages == (Stage(stop=0.5), Stage())
    assert (warm.plan.epochs, warm.schedule, warm.opt_reset) == (100, "constant", "none")
    assert len(registry.load_recipe("paper/vanilla_continual_limited").plan.stages) == 10


def test_the_papers_rows_follow_its_printed_bias_rule_and_others_the_corrected_one() -> None:
    """Their figures were made by code with `l >= k` (Algorithm 1)."""
    names = [n for n in registry.recipe_names() if n.split("/")[1].startswith("swr")]
    literal = {name: dict(registry.load_recipe(name).methods[0])["paper_literal"] for name in names}
    assert literal == {name: name.startswith("paper/") for name in names}
    assert len(names) == 6 * 5 + 8


def test_a_column_has_its_own_network_and_coefficients() -> None:
    recipe = registry.load_recipe("paper/swr_reanchor_cifar100_cnn_bn")
    assert (recipe.source, recipe.architecture, recipe.input_size) == ("cifar100", "cnn_bn", 32)
    settings = dict(recipe.methods[0])
    assert (settings["lambda_f"], settings["lambda_c"]) == (1e-4, 1e-1)
    limited = registry.load_recipe("paper/shrink_perturb_continual_limited_cifar100_cnn")
    assert dict(limited.methods[0])["lam"] == 0.6


def test_coefficients_of_the_rows() -> None:
    figures = {
        row: registry.load_recipe(f"paper/{row}").methods[0].model_dump()
        for row in ("swr_continual_limited", "l2_init_continual_limited", "l2_continual_full")
    }
    limited = figures["swr_continual_limited"]
    assert (limited["lambda_f"], limited["lambda_c"]) == (1e-4, 1.0)
    assert figures["l2_init_continual_limited"]["lam"] == 1e-3
    assert figures["l2_continual_full"]["lam"] == 1e-4
    assert swr_study.chosen_coefficients("shrink_perturb", "continual-full", "mnist mlp") == {
        "shrink_perturb.lam": 0.6
    }
    assert swr_study.chosen_coefficients("shrink_perturb", "stationary") == {}
