"""Metrics and the live view of a running run."""
