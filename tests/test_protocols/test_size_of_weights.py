"""Size of weights against the product of two norms computed by hand."""

import pytest
import torch
from support.analyses import analysis_input, normalised_images
from torch import nn

from protocols.analyses.size_of_weights import SizeOfWeightsSettings, run


@pytest.mark.parametrize("n", [10, 256])
def test_it_is_the_norm_of_the_heads_input_times_that_of_its_weights(n: int) -> None:
    trunk = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    inputs = analysis_input(trunk, nn.Linear(4, 4))
    x, _ = normalised_images(inputs, n)
    with torch.no_grad():
        below = trunk(x).square().sum().sqrt()
        head_norm = inputs.network.model.get_parameter("fc.weight").square().sum().sqrt()
    finding = run(inputs, SizeOfWeightsSettings(images=n, batch_size=7))
    values = {m.name: m.value for m in finding.measures}
    assert values["images"] == min(n, 40)
    assert values["norm of the head's input"] == pytest.approx(float(below), rel=1e-5)
    assert values["norm of the head"] == pytest.approx(float(head_norm), rel=1e-5)
    assert values["size of weights"] == pytest.approx(float(below * head_norm), rel=1e-5)
    assert finding.views[0].values == (values["size of weights"],)


def test_the_paper_takes_256_training_images() -> None:
    assert SizeOfWeightsSettings().images == 256
