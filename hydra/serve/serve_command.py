"""`hydra serve`: shows the runs of a folder in a browser on this machine."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from hydra.serve.routing import loopback, url
from hydra.store.run_folders import refuse_no_folder


def serve_runs(folder: Path, host: str, port: int, *, opened: bool) -> None:
    """Serves the runs of a folder until Ctrl-C or SIGTERM.

    Args:
        folder: the folder of the runs.
        host: a loopback address.
        port: the port; 0 for any free one.
        opened: whether a browser is opened.

    Raises:
        UsageError: another machine could reach the server, the port is in use, or the cache cannot be written.
        RunDirectoryError: there is no such folder.
    """
    refuse_no_folder(folder)
    address = loopback(host)
    # The imports below are slow: errors that were found so far do not wait for them.
    from hydra.config.user_folders import cache_folder
    from hydra.serve.page_cache import PageCache
    from hydra.serve.request_handler import Site
    from hydra.serve.server import bind

    made = PageCache(cache_folder() / "pages")
    with bind(host, address, port, Site(folder.absolute(), made)) as server:
        where = url(address, server.server_address[1])
        with contextlib.suppress(KeyboardInterrupt):  # the only way to end the server
            click.echo(f"{where} shows the runs in {folder}; Ctrl-C ends it")
            if opened:
                click.launch(where)
            server.serve_forever()
