"""The processes on a host: clients of any system, servers, process groups and their relays."""
