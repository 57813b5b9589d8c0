"""Rows as text, JSON and warnings; runs compared; published tables."""
