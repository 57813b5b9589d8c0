"""The run directory and its database."""
