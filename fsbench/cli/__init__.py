"""The command line: one file a command group, each with `register(app)`."""
