"""Base of all packages, without torch: errors, records, specs, tasks, statistics, seeds."""
