"""Whether runs differ: rows with the same settings side by side, and what their repeats tell. Pure."""
