"""Networks on the Hugging Face hub in timm's format, e.g. hf-hub:timm/resnet18.a1_in1k@main."""

from fsbench.backbones.sources import BackboneRequest, LoadedNetwork, timm
from fsbench.core.errors import CheckpointError, UsageError

FORM = "hf-hub:ORG/NAME@REV"
PREFIX = "hf-hub:"


def check(request: BackboneRequest) -> None:
    """Raise UsageError for a malformed id."""
    repository = request.name.partition("@")[0]
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise UsageError(
            f"'{request.ref}' names no hub repository", fix="write hf-hub:ORG/NAME or ...@REVISION"
        )


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load a network. Raise UsageError for a malformed id, CheckpointError if unavailable."""
    from huggingface_hub.errors import HFValidationError

    try:
        return timm.build_timm_network(request.ref, pretrained=request.random_init is None)
    except HFValidationError as error:
        raise UsageError(f"{request.ref}: {error}", fix="write hf-hub:ORG/NAME@REV") from error
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"{request.ref} has no config.json that timm understands: {error!r}",
            fix="download its weights and pass the file with --arch",
        ) from error
