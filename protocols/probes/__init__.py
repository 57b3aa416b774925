"""Probes of frozen features on whole data sets."""
