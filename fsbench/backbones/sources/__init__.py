"""Where backbones come from, one file each; the prefix of a reference names the file."""
