"""Frozen, head-free backbones from timm, hubs, files, functions and runs."""

from fsbench.backbones.base import Backbone
from fsbench.backbones.loading import Classifier, load_backbone, load_classifier
from fsbench.backbones.sources import SOURCES

__all__ = ["SOURCES", "Backbone", "Classifier", "load_backbone", "load_classifier"]
