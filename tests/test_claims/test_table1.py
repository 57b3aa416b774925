"""Table 1 on synthetic data: its data, its gradient descent, its verdicts."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.claims import ClaimSettings, _synthetic, reinit_table1
from fsbench.claims._synthetic import Accuracies
from fsbench.claims.reinit_table1 import MeanAndSpread, Table1Job, judge_cell
from fsbench.core import seeding
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter


def vectors(signal: float = 2.0, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    split = _synthetic.draw_split(signal, n, "test", 0)
    return split.images.reshape(n, -1), split.labels


def test_three_values_carry_the_bits_of_the_label_the_rest_is_noise() -> None:
    x, y = vectors()
    assert set(y) == set(range(8))
    for bit in range(3):
        assert np.array_equal(x[:, bit], np.where(y & 2**bit, 2.0, -2.0))
    noise = x[:, 3:128].astype(np.float64)
    assert abs(noise.mean()) < 0.02
    assert abs(noise.std() - 1) < 0.02
    assert not x[:, 128:].any()


def test_seeds_and_parts_differ_signals_share_their_noise() -> None:
    one, other, strong = (_synthetic.draw_source(*a) for a in ((1.0, 0), (1.0, 1), (2.0, 0)))
    assert not np.array_equal(one.train.images, other.train.images)
    assert not np.array_equal(one.train.labels, one.val.labels[:256])
    assert np.array_equal(one.train.labels, strong.train.labels)
    assert (len(one.train), len(one.val)) == (256, 2000)


def test_a_run_is_gradient_descent_from_glorot_weights(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Against descent written out here: same weights after 2 rounds of 3 steps."""
    from safetensors.torch import load_file

    from pretrain.training.loop import train_recipe

    monkeypatch.setattr(_synthetic, "ROUNDS", 2)
    monkeypatch.setattr(_synthetic, "STEPS", 3)
    recipe, source = _synthetic.build_column_recipe("BL", 5), _synthetic.draw_source(1.0, 5)
    weights = load_file(train_recipe(recipe, source, tmp_path / "run") / "model.safetensors")
    with seeding.stream(*recipe.stream("init")):
        model = ARCHITECTURES.load("study_mlp").build(8)
    w = [p.detach().double() for p in model.parameters()]
    assert [tuple(p.shape) for p in w] == [(32, 128), (32,), (32, 32), (32,), (8, 32), (8,)]
    assert all(not b.any() for b in w[1::2])
    for kernel in w[::2]:
        bound = (6 / sum(kernel.shape)) ** 0.5
        assert 0.9 * bound < kernel.abs().max() <= bound
    x = torch.from_numpy(source.train.images.reshape(256, -1)[:, :128].astype(np.float64))
    y = torch.from_numpy(source.train.labels)
    for _ in range(6):
        w = [p.requires_grad_() for p in w]
        z = (((x @ w[0].T + w[1]).relu()) @ w[2].T + w[3]).relu() @ w[4].T + w[5]
        gradients = torch.autograd.grad(functional.cross_entropy(z, y), w)
        w = [(p - 0.05 * g).detach() for p, g in zip(w, gradients, strict=True)]
    for ours, reference in zip((weights[n] for n, _ in model.named_parameters()), w, strict=True):
        torch.testing.assert_close(ours.double(), reference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "std"),
    [
        ("study_mlp", (2 / (128 + 32)) ** 0.5),
        ("study_mlp_he", (2 / 128) ** 0.5),
        ("study_mlp_torch", (1 / (3 * 128)) ** 0.5),
    ],
)
def test_the_distributions_of_initial_weights(name: str, std: float) -> None:
    with seeding.stream("laws"):
        first = next(ARCHITECTURES.load(name).build(8).parameters())
    assert first.std().item() == pytest.approx(std, rel=0.05)


@pytest.mark.parametrize("method", list(_synthetic.METHODS))
def test_every_method_trains_and_is_scored(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_synthetic, "STEPS", 2)
    (first,) = _synthetic.train_columns([method], 2.0, 0)
    assert 0 < first.test < 100
    assert 0 < first.train < 100
    assert _synthetic.train_columns([method], 2.0, 0) == [first]


def test_a_shared_round_0_changes_no_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_synthetic, "STEPS", 20)
    whole = [
        _synthetic.train_and_score(_synthetic.build_column_recipe(m, 0), 2.0)
        for m in _synthetic.METHODS
    ]
    assert len(set(whole)) > 1
    assert _synthetic.train_columns(list(_synthetic.METHODS), 2.0, 0) == whole


@pytest.mark.parametrize(
    ("baseline", "method", "verdict"),
    [
        (MeanAndSpread(50.0, 1.0), MeanAndSpread(72.0, 1.0), "reproduced"),
        (MeanAndSpread(50.0, 1.0), MeanAndSpread(60.0, 1.0), "direction only"),
        (MeanAndSpread(50.0, 1.0), MeanAndSpread(49.0, 1.0), "not reproduced"),
    ],
)
def test_the_verdict_on_a_cell(
    baseline: MeanAndSpread, method: MeanAndSpread, verdict: str
) -> None:
    theirs = {"BL": MeanAndSpread(50.0, 1.0), "LW": MeanAndSpread(70.0, 1.0)}
    assert judge_cell("LW", theirs, {"BL": baseline, "LW": method}) == verdict


def test_the_baseline_has_no_direction() -> None:
    assert (
        judge_cell("BL", {"BL": MeanAndSpread(50.0, 1.0)}, {"BL": MeanAndSpread(70.0, 1.0)})
        == "not reproduced"
    )


def test_runs_are_assigned_to_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(
        runs: Iterable[Table1Job], settings: ClaimSettings, report: Reporter
    ) -> list[Accuracies]:
        shift = {100: -0.1, 101: 0.1}
        other = {"study_mlp": 0.0, "study_mlp_he": -6.0, "study_mlp_torch": 20.0}
        return [
            Accuracies(
                reinit_table1.PUBLISHED[a][m].mean + shift[seed] + other[network],
                99.5 if (m, network) == ("BL", "study_mlp") else 10.0,
            )
            for m, a, seed, network in runs
        ]

    monkeypatch.setattr(reinit_table1, "_run_table_jobs", printed)
    outcome = reinit_table1.run(ClaimSettings(2))
    (table,) = outcome.statements
    assert len(table.figures) == 18
    assert table.figures[9].what == "signal 1: WELS"
    assert table.figures[9].ours == "66.1 ± 0.1"
    assert (table.verdict, table.conditions[0].ours) == ("reproduced", "99.5 %")
    ours, paper = outcome.panels[3].curves
    assert outcome.panels[3].title == "WELS"
    assert ours.x == paper.x == (0.5, 1.0, 2.0)
    assert ours.y == pytest.approx((23.1, 66.1, 96.8))
    assert (paper.y, paper.published, ours.published) == ((23.1, 66.1, 96.8), True, False)
    assert [note.split(": ")[1] for note in outcome.notes[:3]] == [
        "50.7 ± 0.1",
        "44.7 ± 0.1",
        "70.7 ± 0.1",
    ]


def test_the_table_runs_every_seed_and_other_distributions_a_few() -> None:
    runs = reinit_table1._list_jobs(range(20))
    assert len(runs) == len(set(runs)) == 20 * 18 + 5 * 2


def test_one_seed_has_no_standard_deviation() -> None:
    with pytest.raises(UsageError, match="--seeds 1"):
        reinit_table1.run(ClaimSettings(1))


@pytest.mark.slow
def test_two_processes_give_the_runs_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [("BL", 2.0, 0, a) for a in ("study_mlp", "study_mlp_he")]
    runs.insert(1, ("FC", 2.0, 0, "study_mlp"))
    accuracies = reinit_table1._run_table_jobs(runs, ClaimSettings(), SILENT)
    assert accuracies == [
        _synthetic.train_and_score(
            _synthetic.build_column_recipe(method, seed, architecture), signal
        )
        for method, signal, seed, architecture in runs
    ]
