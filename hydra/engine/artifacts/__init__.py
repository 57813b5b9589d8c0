"""How agents without Hydra get the program: an archive of it, the script that starts it there, and a server."""
