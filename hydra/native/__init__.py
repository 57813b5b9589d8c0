"""The C++ client: built, found, started."""
