"""Classifiers of torchvision with their default weights, e.g. torchvision/resnet50.

Arguments of torchvision may follow the name: torchvision/googlenet?transform_input=false. A network
is the same with its weights, with those of a file and with random ones.
"""

from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit

import torch
from torch import nn

from fsbench.backbones.architectures import below, layer_names
from fsbench.backbones.preprocessing import DEFAULT, Preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork
from fsbench.backbones.sources._hub import is_reachable, library_access
from fsbench.core.errors import UnknownName

FORM = "torchvision/NAME"
PREFIX = "torchvision/"

HEADS = ("fc", "classifier", "heads", "head")
AUXILIARY = ("AuxLogits", "aux1", "aux2")
"""Classifiers used in training only."""
WITH_WEIGHTS = {name: {"transform_input": True} for name in ("googlenet", "inception_v3")}
"""Arguments that torchvision itself sets where it loads its weights."""


def check(request: BackboneRequest) -> None:
    """Raise UsageError for an unknown name."""
    from torchvision import models

    names = models.list_models(module=models)
    name, _ = request.split()
    if name not in names:
        raise UnknownName("torchvision classifier", name, names)


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a network. Raise UsageError for an unknown name, CheckpointError without weights."""
    from torchvision import models

    name, stated = request.split()
    arguments = WITH_WEIGHTS.get(name, {}) | stated
    weights = models.get_model_weights(name).DEFAULT
    random = request.random_init is not None
    with library_access(request, f"checkpoints folder of torch.hub (TORCH_HOME) by {weights.url}"):
        stored = Path(torch.hub.get_dir(), "checkpoints", Path(urlsplit(weights.url).path).name)
        if not (random or stored.is_file() or is_reachable(weights.url)):
            raise URLError("no connection")
        model = models.get_model(name, weights=None if random else weights, **arguments)
    head = remove_head(model)
    options = "".join(f", {key}={value}" for key, value in arguments.items())
    preset = weights.transforms()
    size, interpolation = int(preset.crop_size[0]), preset.interpolation.value
    values = {"mean": preset.mean, "std": preset.std, "interpolation": interpolation}
    return LoadedNetwork(
        module=model,
        architecture=request.name if random else f"{name}.{weights.name}",
        features=f"torchvision, input of {head}{options}",
        preprocessing=Preprocessing.stated(
            DEFAULT if random else f"torchvision's {weights}", input_size=size, **values
        ),
        test_size=size,
    )


def remove_head(model: nn.Module) -> str:
    """Remove the classification layer and auxiliary heads; return the name of the layer."""
    for name in AUXILIARY:
        if hasattr(model, name):
            setattr(model, name, None)
    head = next(name for name in HEADS if hasattr(model, name))
    last = [name for name in layer_names(model) if below(name, (head,))][-1]
    model.set_submodule(last, nn.Identity())
    return last
