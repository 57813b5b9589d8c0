"""``--in-cluster``: the whole command runs in a Job; Hydra follows its log and fetches its run directory."""
