"""What a shell and a reader of manuals get of the commands: completion, man pages, schemas."""
