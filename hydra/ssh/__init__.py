"""Engine: groups on plain hosts over OpenSSH, or on the nodes of a Slurm allocation."""
