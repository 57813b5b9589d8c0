"""The commands of `hydra`, one file for each kind."""
