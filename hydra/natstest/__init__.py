"""NATS as a system that Hydra measures: core publish-subscribe, and JetStream."""
