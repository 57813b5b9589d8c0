"""What a shell gets of the commands: completion, man pages, schemas, and the line that says what is wrong."""
