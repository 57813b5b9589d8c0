"""What an engine is: its interface, placement of groups, resources, and the program for agents that have no Hydra."""
