"""Executes one resolved scenario."""
