"""Metrics and the live view of a run in progress."""
