"""Results on disk: written once, verified whenever they are read, merged from shards."""
