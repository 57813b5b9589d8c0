"""What happens in a run, and what has to be known of it, as values: rendered where they are stored or shown. Pure.

Whoever reads stored events knows all their kinds: each class registers itself when its module is imported.
"""

from hydra.events import clients as clients
from hydra.events import runs as runs
from hydra.events import steps as steps
from hydra.events import warnings as warnings
