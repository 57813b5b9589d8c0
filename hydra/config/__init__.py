"""Files and registries → a resolved scenario and a cluster; what a machine can carry of it."""
