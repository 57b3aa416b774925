"""The command line: one file a command, or a group of commands with `register(app)`."""
