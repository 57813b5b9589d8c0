"""The commands of `hydra`; each file has one kind of them."""
