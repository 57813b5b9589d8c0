"""Where clients run: placement and the engines behind one interface."""
