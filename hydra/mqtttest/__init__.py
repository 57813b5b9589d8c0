"""MQTT as a system under test: its servers, its Python client, its settings and commands."""
