"""ZeroMQ as a system that Hydra measures: raw PUB/SUB, without servers."""
