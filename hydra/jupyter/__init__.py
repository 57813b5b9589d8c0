"""The report page of a run and its notebook, made from the run's files only."""
