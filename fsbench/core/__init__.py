"""What every package builds on, without torch: errors, records, specs, tasks, statistics, seeds."""
