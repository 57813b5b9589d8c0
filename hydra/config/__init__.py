"""Files and registries → a resolved scenario and a cluster; whether a machine can carry it."""
