"""Mesos as an engine: groups are tasks of a framework."""
