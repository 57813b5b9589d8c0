"""TOML to nouns: clusters and scenarios, and the refusal of what cannot be."""
