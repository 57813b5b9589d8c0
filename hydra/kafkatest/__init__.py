"""Kafka as a system that Hydra measures: its clients, brokers, topics and tools."""
