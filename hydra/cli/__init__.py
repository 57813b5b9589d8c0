"""The commands of `hydra`, one file for each group of commands."""
