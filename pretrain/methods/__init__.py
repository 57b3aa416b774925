"""Training methods, one file each; the file name is the public name (see CONTRIBUTING.md)."""
