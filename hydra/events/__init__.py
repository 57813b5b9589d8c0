"""What happens in a run, and what has to be known of it, as values: rendered where they are stored or shown. Pure."""
