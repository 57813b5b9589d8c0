"""NATS as a system under test: core publish-subscribe, and JetStream."""
