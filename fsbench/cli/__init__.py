"""The command line: files that declare commands, by `options.command`."""
