"""Kafka as a system under test: its clients' transports, its broker, its topics."""
