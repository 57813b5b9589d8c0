"""A notebook executed, as Jupyter does it."""

from __future__ import annotations

from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.suite.waiting import LONG_S


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Executes a notebook in a fresh kernel, with ``folder`` as its working directory; returns it with its outputs."""
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=int(LONG_S), kernel_name="python3", resources=resources)
    done: NotebookNode = client.execute()
    return done
