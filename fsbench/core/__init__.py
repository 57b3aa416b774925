"""Base of all packages, without torch: errors, records, specs, tasks, statistics, seeds."""

__version__ = "0.1.0"
