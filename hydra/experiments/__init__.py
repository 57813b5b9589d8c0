"""Published experiments: their files as scenarios and tables, and the run of their parts."""
