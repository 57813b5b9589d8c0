"""What the steps of runs tell of more clients: `hydra fit` and `hydra plan`."""
