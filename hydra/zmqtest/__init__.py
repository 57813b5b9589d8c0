"""ZeroMQ as a system that Hydra measures: raw PUB/SUB over its clients' transports."""
