"""TOML to nouns: clusters and scenarios, and the refusal of what cannot be."""

from hydra.config.cluster import load_cluster
from hydra.config.engines import load_engine
from hydra.config.places import conf_dir, experiments, scenarios
from hydra.config.scenario import load_scenario, scenario_from
from hydra.config.toml import parse_set

__all__ = [
    "conf_dir",
    "experiments",
    "load_cluster",
    "load_engine",
    "load_scenario",
    "parse_set",
    "scenario_from",
    "scenarios",
]
