"""The notebooks that come with Hydra, and how one is executed."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, Any, Final

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from traitlets.config import Config

from hydra.errors import HydraError

CELL_TIMEOUT_S: Final = 600


class _ThisPython(AsyncKernelManager):
    """A kernel of the interpreter that runs Hydra, whatever kernels the user has installed under any name."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """How the kernel is started."""
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


def template(name: str) -> NotebookNode:
    """A notebook of this package: ``report``, ``experiment`` or ``sweep``."""
    notebook: NotebookNode = nbformat.read(Path(__file__).with_name(f"{name}.ipynb"), as_version=4)
    return notebook


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Executes a notebook in a fresh kernel, with ``folder`` as its working directory; returns it with its outputs.

    Raises:
        HydraError: a cell failed, or the kernel did.
        KeyboardInterrupt: Ctrl-C; the kernel is gone.
    """
    with tempfile.TemporaryDirectory(prefix="hydra-kernel-") as scratch:
        # Sockets of this user alone; nothing of their own IPython takes part, nothing is written into their home.
        sockets = {"transport": "ipc", "ip": f"{scratch}/ipc", "connection_file": f"{scratch}/kernel.json"}
        client = NotebookClient(
            notebook,
            config=Config({"ConnectionFileMixin": sockets}),
            kernel_manager_class=_ThisPython,
            timeout=CELL_TIMEOUT_S,
            shutdown_kernel="immediate",
            resources={"metadata": {"path": str(folder)}},
        )
        log = Path(scratch) / "stderr"
        try:
            with log.open("wb") as stderr:
                _drive(_executed(client, {**os.environ, "IPYTHONDIR": scratch}, stderr))
        except CellExecutionError as e:
            raise HydraError(f"a cell of the notebook failed: {e.ename}: {e.evalue}") from e
        except (CellTimeoutError, DeadKernelError, RuntimeError) as e:
            # RuntimeError: the kernel did not come up.
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            said = f"; it said last: {last[0]}" if last else ""
            raise HydraError(f"the notebook's kernel failed: {e}{said}", "look at memory and open files") from e
    return notebook


async def _executed(client: NotebookClient, environment: Mapping[str, str], stderr: IO[bytes]) -> None:
    """Executes the notebook; whatever happens, the kernel is gone afterwards."""
    try:
        await client.async_execute(env=environment, stderr=stderr)
    finally:
        # nbclient ends a kernel that has come up, not one that is about to.
        if isinstance(client.km, AsyncKernelManager) and client.km.has_kernel:
            await client.km.shutdown_kernel(now=True)


def _drive(coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine to its end; Ctrl-C cancels it and is raised once it has ended.

    It gets a thread of its own: in the main thread nbclient would take the signal, and with it the way to end in order.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    try:
        with ThreadPoolExecutor(1) as thread:
            ended = thread.submit(loop.run_until_complete, task)
            try:
                ended.result()
            except KeyboardInterrupt:
                loop.call_soon_threadsafe(task.cancel)
                wait([ended])
                raise
    finally:
        loop.close()
