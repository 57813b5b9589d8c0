"""The program for agents without Hydra: an archive, the script that starts it on an agent, and an HTTP server."""
