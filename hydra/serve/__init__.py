"""Pages of a folder of runs: `hydra serve`."""
