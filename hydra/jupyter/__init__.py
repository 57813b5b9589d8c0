"""The notebooks: the report of a run, and a sweep that is started from a cell."""
