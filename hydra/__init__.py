"""Hydra: how a publish-subscribe system behaves as the number of clients grows."""
