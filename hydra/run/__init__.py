"""A run from start to end: what is launched, each step of it, and what is recorded of it."""
