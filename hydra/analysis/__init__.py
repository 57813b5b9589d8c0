"""Fits of throughput and costs, and comparisons of runs."""
