"""Tables of the regime study: gaps over seeds by hand, power, and the list of rounds."""

import csv
import json
from pathlib import Path

import pandas
import pytest
import torch
from studies import list_rounds, train_plain
from support import studies


@pytest.mark.parametrize(("seeds", "gain"), [(3, 3.2640), (5, 1.6820), (10, 0.9960)])
def test_detectable_gains_are_those_recorded_from_statsmodels(seeds: int, gain: float) -> None:
    """TTestPower().solve_power(nobs=seeds, alpha=0.05, power=0.8) of statsmodels 0.15.0."""
    assert studies.find_detectable(2.0, seeds) == pytest.approx(2 * gain, rel=1e-4)


def test_measures_are_compared_over_the_seeds_that_both_have() -> None:
    methods = {
        "normal": {0: 0.5, 1: 0.6, 2: 0.7},
        "lw": {0: 0.9, 1: 1.0, 2: 1.1001, 7: 5.0},  # gaps .4, .4, .4001
        "swr": {0: 0.6, 1: 0.5, 2: 0.9},  # gaps .1, -.1, .2
        "llf": {0: 0.5},
    }
    assert studies.compare_methods(pandas.DataFrame(methods)) == {
        "normal": "0.6",
        "lw": "2 (+0.4*)",
        "swr": "0.6667 (+0.0667)",
        "llf": "0.5",
    }


def test_rounds_are_listed_as_the_log_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "runs" / "regime-seal-s3"
    run.mkdir(parents=True)
    recipe = {
        "architecture": "scnn", "width": 12, "lr": 0.03, "weight_decay": 0.0, "seed": 3,
        "label_smoothing": 0.0, "schedule": "constant", "plan": {"epochs": 2},
        "augmentation": "none", "source_subset": {"classes": 20, "images_per_class": 25},
        "methods": [{"name": "seal", "ascent_factor": 3.0, "decay": None}],
    }  # fmt: skip
    (run / "recipe.json").write_text(json.dumps({"recipe": recipe}))
    epochs = [(0, None, 0.5), (1, 0.2, 1.0), (0, None, 0.1), (1, 0.21, 0.99)]
    log = [{"epoch": e, "val_accuracy": v, "train_accuracy": t} for e, v, t in epochs]
    (run / "log.jsonl").write_text("\n".join(map(json.dumps, log)))
    note = "training accuracy 100.0% before the ascent, 31.8% after it"
    (run / "rewrites.jsonl").write_text(json.dumps({"note": note}))
    file = tmp_path / "rounds.csv"
    file.write_text("run,network,lr\nregime-lw-s0,scnn,0.10\n")
    list_rounds.update_list(tmp_path / "runs", file)
    assert "regime-seal-s3 has not ended" in capsys.readouterr().err
    assert file.read_text() == "run,network,lr\nregime-lw-s0,scnn,0.10\n"
    (run / "run.json").write_text("{}")
    list_rounds.update_list(tmp_path / "runs", file)
    lw, seal = csv.DictReader(file.open())
    assert (lw["run"], lw["lr"], lw["rounds"]) == ("regime-lw-s0", "0.10", "")
    assert (seal["run"], seal["augmentation"], seal["seed"]) == ("regime-seal-s3", "none", "3")
    assert (seal["rounds"], seal["training"], seal["ascents"]) == ("20.00 21.00", "99.0", "31.8")
    assert (seal["settings"], seal["epochs"]) == ("ascent_factor=3.0", "2")


def test_the_plain_loop_learns_and_redraws(capsys: pytest.CaptureFixture[str]) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 2
    images = torch.randn(40, 3, generator=generator) * 0.1 + (labels * 2.0 - 1)[:, None]
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    train_plain.train(network, [(images, labels)] * 2, 0, 0.0, rounds=2, epochs=10)
    assert capsys.readouterr().out.splitlines()[1].startswith("1 100.00 100.00 ")
    kernel = torch.zeros(1000, 50)
    train_plain.redraw(kernel, 0.25, generator)
    drawn = kernel[kernel != 0]
    assert len(drawn) / kernel.numel() == pytest.approx(0.25, abs=0.01)
    assert float(drawn.std()) == pytest.approx((2 / 50) ** 0.5, rel=0.02)
