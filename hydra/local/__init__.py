"""The embedded cluster as an engine: groups are child processes on this machine."""
