"""How clients are told: the control channel's messages, keys and sockets."""
