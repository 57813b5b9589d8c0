"""What the clients' own code can do without any system: the ceiling of every figure measured with it."""
