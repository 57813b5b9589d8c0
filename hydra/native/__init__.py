"""The native client's program: how it is built, and how it is started."""
