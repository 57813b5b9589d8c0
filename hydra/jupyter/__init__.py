"""The report page of a run and its notebook, made from the files of the run only."""
