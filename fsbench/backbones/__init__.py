"""Backbones from every place where people keep them, head-free and frozen."""

from __future__ import annotations

from fsbench.backbones.base import Backbone
from fsbench.backbones.loading import Classifier, classifier, load
from fsbench.backbones.reference import SOURCES

__all__ = ["SOURCES", "Backbone", "Classifier", "classifier", "load"]
