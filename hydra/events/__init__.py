"""Events of a run, and warnings of a run, a row or a search, as data: a class for each kind.

Each class registers its kind when its module is imported, so code that reads stored events knows all kinds.
"""

from hydra.events import run_events as run_events
from hydra.events import warnings as warnings
