"""What is kept of a run, and the tables that derive from it."""
