"""What systems need to bring up servers of their own: supervised processes, calls that wait, owners."""
