"""Measures Hydra beside bare programs, other tools and the machine's limits, and judges each figure by its goal."""
