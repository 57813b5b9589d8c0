"""How throughput and costs grow with the number of clients: fits with intervals, and plans made of them. Pure."""
