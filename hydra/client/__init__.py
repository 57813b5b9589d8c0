"""What one process on a host does: a client of any system, a server, its process group, the relay of that group."""
