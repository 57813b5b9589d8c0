"""MQTT as a system that Hydra measures: its clients, servers, settings and commands."""
