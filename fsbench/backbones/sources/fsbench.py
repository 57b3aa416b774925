"""Networks of this project with random weights: fsbench/NAME[@WIDTH] and --random-init SEED."""

from fsbench.backbones.networks import load_architecture
from fsbench.backbones.preprocessing import DEFAULT, IMAGENET_MEAN, IMAGENET_STD, Preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork
from fsbench.core.errors import UsageError

FORM = "fsbench/NAME[@WIDTH]"
PREFIX = "fsbench/"
MAX_WIDTH = 4096


def check(request: BackboneRequest) -> None:
    """Raise UnknownName, or UsageError for a bad width or without a seed."""
    load_architecture(split_width(request.name)[0])
    if request.random_init is None:
        raise UsageError(
            f"{request.ref} is an architecture without weights",
            fix="pass --random-init SEED, or a run of it as run:DIR, or FILE@" + request.ref,
        )


def split_width(name: str) -> tuple[str, int | None]:
    """Split scnn@12 into name and width; None is the architecture's own. Raise UsageError."""
    name, at, width = name.partition("@")
    if not at:
        return name, None
    if not width.isdecimal() or not 1 <= int(width) <= MAX_WIDTH:
        raise UsageError(
            f"width '{width}' of fsbench/{name} is no integer from 1 to {MAX_WIDTH}",
            fix=f"write fsbench/{name}@32, or fsbench/{name} for its own width",
        )
    return name, int(width)


def load(request: BackboneRequest) -> LoadedNetwork:
    return build_network(*split_width(request.name))


def build_network(
    name: str, width: int | None = None, input_size: int | None = None
) -> LoadedNetwork:
    """Build the head-free network; width and size default to its own. Raise UnknownName."""
    architecture = load_architecture(name)
    architecture = architecture.at(input_size or architecture.input_size)
    full_name = f"fsbench/{name}" + ("" if width is None else f"@{width}")
    module = architecture.build(0, width)
    return LoadedNetwork(
        module=module,
        architecture=name if name.startswith("timm/") else full_name,
        features=architecture.features,
        preprocessing=Preprocessing.stated(
            DEFAULT, input_size=architecture.input_size, mean=IMAGENET_MEAN, std=IMAGENET_STD
        ),
        test_size=architecture.input_size,
    )
