"""Models of figures, and comparisons of runs."""
