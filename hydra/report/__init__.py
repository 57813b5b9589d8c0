"""Rows as text, JSON and warnings; comparisons of runs; published tables."""
