"""Published experiments: which runs repeat them, one after the other, and their tables beside the published ones."""
