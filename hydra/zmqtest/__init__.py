"""Raw ZMQ PUB/SUB as a system under test: its clients' transports."""
