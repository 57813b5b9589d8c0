"""Reads scenario files, cluster files and plug-in registries, and checks whether a scenario fits a machine."""
