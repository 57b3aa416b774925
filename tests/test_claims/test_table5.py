"""Table 5 on synthetic data: its runs, its penalty, its verdicts."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import torch
from torch.nn import functional

from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.claims import ClaimSettings, _runs, _synthetic, reinit_table5
from fsbench.claims._synthetic import Accuracies
from fsbench.claims.reinit_table5 import (
    PENALTIES,
    PUBLISHED,
    AccuraciesByCell,
    Table5Job,
    build_table5_recipe,
    judge_closeness,
    judge_direction,
    judge_table_cell,
)
from fsbench.core import seeding
from fsbench.core.errors import UsageError
from fsbench.core.progress import Reporter


def test_every_cell_has_the_steps_of_table_1_and_its_method() -> None:
    plain = build_table5_recipe(Table5Job("Baseline", 0.0, "sgd", 3))
    assert (plain.plan.rounds, plain.plan.epochs, plain.seed) == (1, 5, 3)
    assert plain.name == "paper/normal"
    ours = build_table5_recipe(Table5Job("LW", 0.02, "adam", 0))
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
        build_table5_recipe(Table5Job("Rescaling", 0.1, "sgd", 5)),
        _synthetic.draw_source(0.5, 5),
    )
    weights = load_file(train_recipe(chosen, source, tmp_path / "run") / "model.safetensors")
    with seeding.stream(*chosen.stream("init")):
        model = ARCHITECTURES.load("study_mlp").build(8)
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
    assert 0 < reinit_table5._train_job(Table5Job(column, 0.01, optimizer, 0)).test < 100


def test_a_mean_within_two_deviations_is_close() -> None:
    assert (
        judge_closeness(0.25, (0.20, 0.22)) == "not reproduced"
    )  # .21, sd .0141: .0283 + .005 < .04
    assert judge_closeness(0.24, (0.20, 0.22)) == "reproduced"


def test_a_direction_must_be_beyond_its_error() -> None:
    below = (0.20, 0.30, 0.40)
    assert judge_direction(0.3, (0.24, 0.35, 0.46), below) == "direction only"
    assert judge_direction(-0.3, (0.24, 0.35, 0.46), below) == "not reproduced"
    assert judge_direction(0.3, (0.10, 0.45, 0.46), below) == "not reproduced"


def scores(by_column: dict[str, Sequence[float]]) -> AccuraciesByCell:
    """The same accuracies at every penalty."""
    return {(c, p, "adam"): tuple(values) for c, values in by_column.items() for p in PENALTIES}


def test_a_cell_is_judged_against_its_own_reference() -> None:
    cells = scores({"Baseline": (0.20, 0.21), "Rescaling": (0.40, 0.41), "LW": (0.10, 0.12)})
    assert judge_table_cell(cells, 1, "Rescaling").verdict == "direction only"
    assert judge_table_cell(cells, 1, "LW").verdict == "not reproduced"
    assert judge_table_cell(cells, 1, "Baseline").verdict == "not reproduced"
    assert judge_table_cell(cells, 0, "Baseline").verdict == "reproduced"
    assert judge_table_cell(cells, 0, "LW").what == "L2 0: LW"
    assert judge_table_cell(cells, 0, "LW").ours == "0.11 ± 0.01"
    cells["Baseline", PENALTIES[1], "adam"] = (0.42, 0.43)
    assert judge_table_cell(cells, 1, "Baseline").verdict == "direction only"
    assert judge_table_cell(cells, 1, "Rescaling").verdict == "not reproduced"


def test_printed_accuracies_reproduce_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(
        function: Any, runs: Iterable[Table5Job], settings: Any, name: str, report: Reporter
    ) -> list[Accuracies]:
        def score(job: Table5Job) -> float:
            return PUBLISHED[job.column][PENALTIES.index(job.penalty)] + (job.seed - 100) / 1000

        return [Accuracies(100 * score(job), 99.0) for job in runs]

    monkeypatch.setattr(_runs, "run_jobs", printed)
    outcome = reinit_table5.run(ClaimSettings(3))
    (table,) = outcome.statements
    assert len(table.figures) == 18
    assert (table.verdict, table.conditions[0].holds) == ("not reproduced", True)
    assert table.reason.startswith("settings found by a search for these figures (alone: reprod")
    first = "gradient descent, L2 0.005: Baseline 0.51, Rescaling 0.67, LW 0.82"
    assert outcome.notes[0] == first
    adam, descent = outcome.panels
    assert adam.curves[1].y == pytest.approx([v + 0.001 for v in PUBLISHED["Rescaling"]])
    assert adam.curves[4].y == PUBLISHED["Rescaling"]
    assert [curve.published for curve in descent.curves] == [False] * 3 + [True] * 3


def test_the_table_runs_every_seed_and_gradient_descent_a_few() -> None:
    runs = reinit_table5._list_jobs(range(20))
    assert len(runs) == len(set(runs)) == 20 * 18 + 2 * 9


def test_one_seed_has_no_standard_deviation() -> None:
    with pytest.raises(UsageError, match="--seeds 1"):
        reinit_table5.run(ClaimSettings(1))


@pytest.mark.slow
def test_the_row_without_penalty_is_reproduced() -> None:
    """An independent prototype gave .21 / .24 / .26 from Glorot weights (sd .02 over seeds).

    The bounds are 3 standard errors of 4 seeds, .03, away.
    """
    means = {
        column: mean(
            reinit_table5._train_job(Table5Job(column, 0.0, "sgd", seed)).test / 100
            for seed in range(4)
        )
        for column in PUBLISHED
    }
    expected = {"Baseline": 0.21, "Rescaling": 0.24, "LW": 0.26}
    assert means == pytest.approx(expected, abs=0.03)
    assert means["Baseline"] < means["Rescaling"] < means["LW"]
