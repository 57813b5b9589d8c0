"""Measuring functions of Hydra's clients and of bare loops around the same libraries, one module for each system."""
