"""Shrink and perturb: an interpolation to the stored start, or Ash & Adams' noise."""

from pathlib import Path

import pytest
import torch
from support.pretrain import lines, source, tiny, train_recipe
from support.stages import Event, at_new_data

from fsbench.core.errors import UsageError
from pretrain.bases import penalties
from pretrain.recipes import plan


def parameters(event: Event) -> set[str]:
    return {n for n, _ in event.made.ctx.model.named_parameters()}


@pytest.mark.parametrize("lam", [0.25, 0.8])
def test_all_parameters_go_part_of_the_way_to_the_start(lam: float, tmp_path: Path) -> None:
    event = at_new_data("shrink_perturb", tmp_path, f"shrink_perturb.lam={lam}", "lr=0.2")
    assert event.changed == parameters(event)
    for name in parameters(event):
        start, old, new = (t[name].double() for t in event[1:])
        torch.testing.assert_close(new, (1 - lam) * old + lam * start, rtol=1e-5, atol=1e-6)
        left = float((new - start).norm() / (old - start).norm())
        assert left == pytest.approx(1 - lam, rel=1e-4)


def test_lam_1_restores_the_initial_parameters_exactly(tmp_path: Path) -> None:
    event = at_new_data("shrink_perturb", tmp_path, "shrink_perturb.lam=1")
    assert all(torch.equal(event.after[n], event.start[n]) for n in parameters(event))
    assert not torch.equal(event.after["bn1.running_mean"], event.start["bn1.running_mean"])


def test_it_is_affine_in_lam(tmp_path: Path) -> None:
    a, b, middle = (
        at_new_data("shrink_perturb", tmp_path / str(lam), f"shrink_perturb.lam={lam}").after
        for lam in (0.2, 0.6, 0.4)
    )
    for name in ("conv1.weight", "bn1.bias", "fc.bias"):
        torch.testing.assert_close((a[name] + b[name]) / 2, middle[name])


def test_fresh_draws_differ_between_events(tmp_path: Path) -> None:
    settings = ("shrink_perturb.fresh_draw=true", "shrink_perturb.lam=1")
    event = at_new_data("shrink_perturb", tmp_path, *settings)
    kernel = event.after["layer4.0.conv2.weight"]
    assert not torch.equal(kernel, event.start["layer4.0.conv2.weight"])
    assert float(kernel.std()) == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.05)
    assert torch.equal(event.after["bn1.weight"], torch.ones(8))
    event.made.ctx.acting = "shrink_perturb"
    assert penalties.stored_anchors(event.made.ctx) == {}


def test_ash_and_adams_shrinks_and_adds_noise_to_layers_alone(tmp_path: Path) -> None:
    settings = ("shrink_perturb.form=ash_adams", "shrink_perturb.noise=0.05", "width=4")
    event = at_new_data("shrink_perturb", tmp_path, *settings)
    kernels = {n for n in parameters(event) if event.before[n].ndim > 1}
    assert event.changed == kernels | {"fc.bias"}
    noise = torch.cat([(event.after[n] - 0.3 * event.before[n]).flatten() for n in kernels])
    assert float(noise.std()) == pytest.approx(0.05, rel=0.03)
    assert abs(float(noise.mean())) < 0.05 * 4 / len(noise) ** 0.5


def test_it_acts_at_every_stage_start_except_the_first(tmp_path: Path) -> None:
    recipe = tiny("shrink_perturb").replace(plan.scenario_fields("continual-full"))
    train_recipe(recipe, source(), tmp_path)
    events = [(row["stage"], row["round"]) for row in lines(tmp_path, "rewrites.jsonl")]
    assert events == [(stage, 2 * stage) for stage in range(1, 10)]


@pytest.mark.parametrize("name", ["shrink_perturb", "head_reset", "full_reset"])
def test_one_stage_is_refused_with_the_option_that_helps(name: str) -> None:
    with pytest.raises(UsageError, match="--scenario warm-start"):
        tiny(name).replace(plan.scenario_fields("stationary"))
