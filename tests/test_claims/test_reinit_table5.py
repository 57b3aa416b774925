"""Table 5 on synthetic data: its runs, its penalty, its verdicts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

import pytest
import torch
from support.claims import judge_planted
from torch.nn import functional

from fsbench.backbones.networks import load_architecture
from fsbench.claims import _synthetic, reinit_table5
from fsbench.claims.engine import ClaimJob, Runs
from fsbench.claims.reinit_table5 import CLAIM, PENALTIES, PUBLISHED, TABLE, build_table5_recipe
from fsbench.core import seeding


def test_every_cell_has_the_steps_of_table_1_and_its_method() -> None:
    plain = build_table5_recipe("Baseline", 0.0, "sgd", 3)
    assert (plain.plan.rounds, plain.plan.epochs, plain.seed) == (1, 5, 3)
    assert plain.name == "paper/normal"
    ours = build_table5_recipe("LW", 0.02, "adam", 0)
    assert (ours.plan.rounds, ours.plan.epochs, ours.plan.epoch_images) == (5, 1, 360 * 256)
    assert (ours.optimizer, ours.lr, ours.weight_decay) == ("adam", 1e-2, 0.0)
    assert ours.name == "paper/lw+l2"
    assert ours.method("lw").model_dump()["order"] == (1, 1, 2, 2, 2)
    assert ours.method("l2").model_dump() == {"lam": 0.02, "half": True, "on": "kernels"}


def test_the_penalty_is_l2_sum_of_squared_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Against descent on the written-out loss, with rescaling between the rounds."""
    from safetensors.torch import load_file

    from pretrain.training.loop import train_recipe

    monkeypatch.setattr(reinit_table5, "STEPS", 10)
    chosen, source = (
        build_table5_recipe("Rescaling", 0.1, "sgd", 5),
        _synthetic.draw_source(0.5, 5),
    )
    weights = load_file(train_recipe(chosen, source, tmp_path / "run") / "model.safetensors")
    with seeding.stream(*chosen.stream("init")):
        model = load_architecture("study_mlp").build(8)
    w = [p.detach().double() for p in model.parameters()]
    sizes = [float(p.norm()) for p in w]
    x = torch.from_numpy(source.train.images.reshape(256, -1)[:, :128]).double()
    y = torch.from_numpy(source.train.labels)
    for step in range(10):
        if step and step % 2 == 0:
            w = [p * (s / p.norm()) if p.ndim == 2 else p for p, s in zip(w, sizes, strict=True)]
        w = [p.requires_grad_() for p in w]
        z = (((x @ w[0].T + w[1]).relu()) @ w[2].T + w[3]).relu() @ w[4].T + w[5]
        loss = functional.cross_entropy(z, y) + 0.1 * sum((p**2).sum() for p in w[::2])
        gradients = torch.autograd.grad(loss, w)
        w = [(p - 0.05 * g).detach() for p, g in zip(w, gradients, strict=True)]
    for ours, reference in zip((weights[n] for n, _ in model.named_parameters()), w, strict=True):
        torch.testing.assert_close(ours.double(), reference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("column", list(PUBLISHED))
def test_every_column_trains_and_is_scored(
    column: str, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reinit_table5, "STEPS", 10)
    measured = reinit_table5.measure(ClaimJob((column, 0.01, optimizer), 0))
    assert 0 < measured["test"] < 1 < measured["fit"] <= 100


def plant(
    columns: Mapping[str, Sequence[float]],
) -> dict[tuple[str, float, str], list[dict[str, float]]]:
    """The same accuracies at every penalty."""
    return {arm: [{"test": a, "fit": 99.0} for a in columns[arm[0]]] for arm in TABLE}


def judge(column: str, penalty: float, columns: Mapping[str, Sequence[float]]) -> str:
    return reinit_table5.judge_mean(Runs(plant(columns)), column, penalty, "adam").verdict


def test_a_mean_within_two_deviations_is_close() -> None:
    """Of .19: the deviation of two seeds .02 apart is .0141, 2 x .0141 + .005 = .0333."""
    assert (
        judge("Baseline", 0.0, {"Baseline": (0.21, 0.23), "Rescaling": (), "LW": ()})
        == "reproduced"
    )
    assert (
        judge("Baseline", 0.0, {"Baseline": (0.22, 0.24), "Rescaling": (), "LW": ()})
        == "not reproduced"
    )


@pytest.mark.parametrize(
    ("lw", "verdict"),
    [
        ((0.24, 0.35, 0.46), "direction only"),
        ((0.10, 0.45, 0.46), "not reproduced"),  # the difference is below its error
        ((0.16, 0.25, 0.34), "not reproduced"),  # the printed difference is positive
    ],
)
def test_a_direction_must_be_beyond_its_error(lw: tuple[float, ...], verdict: str) -> None:
    columns = {"Baseline": (0.20, 0.30, 0.40), "Rescaling": (), "LW": lw}
    assert judge("LW", 0.01, columns) == verdict


def test_the_reference_of_the_baseline_is_the_one_without_penalty() -> None:
    columns = {"Baseline": (0.20, 0.21), "Rescaling": (0.40, 0.41), "LW": (0.10, 0.12)}
    runs = plant(columns)
    assert [judge(c, 0.005, columns) for c in PUBLISHED] == [
        "not reproduced",
        "direction only",
        "not reproduced",
    ]
    runs["Baseline", 0.005, "adam"] = [{"test": 0.42}, {"test": 0.43}]
    figures = [reinit_table5.judge_mean(Runs(runs), c, 0.005, "adam") for c in PUBLISHED]
    assert [f.verdict for f in figures[:2]] == ["direction only", "not reproduced"]
    assert (figures[2].what, figures[2].ours) == ("L2 0.005: LW", "0.11 ± 0.01")


def test_printed_accuracies_are_no_evidence_after_a_search() -> None:
    runs = {
        (column, penalty, law): [
            {"test": PUBLISHED[column][PENALTIES.index(penalty)] + d, "fit": 99.0}
            for d in (0, 0.001)
        ]
        for column, penalty, law in TABLE
    }
    table = judge_planted(CLAIM, runs)["table"]
    assert len(table.figures) == 18
    assert (table.verdict, table.conditions[0].holds) == ("not reproduced", True)
    assert table.reason.startswith("settings found by a search for these figures (alone: reprod")


@pytest.mark.slow
def test_the_row_without_penalty_is_reproduced() -> None:
    """An independent prototype gave .21 / .24 / .26 from Glorot weights (sd .02 over seeds).

    The bounds are 3 standard errors of 4 seeds, .03, away.
    """
    means = {
        column: mean(
            reinit_table5.measure(ClaimJob((column, 0.0, "sgd"), seed))["test"] for seed in range(4)
        )
        for column in PUBLISHED
    }
    expected = {"Baseline": 0.21, "Rescaling": 0.24, "LW": 0.26}
    assert means == pytest.approx(expected, abs=0.03)
    assert means["Baseline"] < means["Rescaling"] < means["LW"]
