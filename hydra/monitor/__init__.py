"""Figures and the view of a run while it goes on."""
