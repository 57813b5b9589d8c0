"""The C++ client: how it is built, found and started."""
