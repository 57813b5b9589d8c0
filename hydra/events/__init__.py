"""Events of a run, and warnings of a run, a row or a search, as data: one class for each.

Whoever reads stored events knows all their kinds: each class registers itself when its module is imported.
"""

from hydra.events import run_events as run_events
from hydra.events import warnings as warnings
