"""Fits of throughput and costs, capacity plans, and comparisons of runs."""
