"""``--in-cluster``: the whole command runs in a Job; its log is followed here, and its run directory fetched."""
