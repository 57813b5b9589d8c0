"""The interface of engines, placement of groups, resources, and the program for agents without Hydra."""
