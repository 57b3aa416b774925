"""Networks on the Hugging Face hub in timm's format, e.g. hf-hub:timm/resnet18.a1_in1k@main."""

from fsbench.backbones.sources._hub import check_repository as check
from fsbench.backbones.sources.timm import load

__all__ = ["FORM", "PREFIX", "check", "load"]

FORM = "hf-hub:ORG/NAME@REV"
PREFIX = "hf-hub:"
