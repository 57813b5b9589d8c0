"""The control channel between the controller and its clients: both ends, keys and sockets."""
