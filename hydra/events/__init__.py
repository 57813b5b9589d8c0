"""What happened in a run, and the warnings of a run, a row or a search: a class for each."""
