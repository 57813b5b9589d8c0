"""The execution of one resolved scenario."""
