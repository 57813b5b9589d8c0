"""An error that a limit of this process caused names the limit, and nothing else."""

from __future__ import annotations

import errno
import resource
import sqlite3

import pytest

from hydra.cli.process_limits import limit_behind
from hydra.errors import ServerError, UsageError
from hydra.run.launcher import require_open_files


def caused(error: Exception, by: BaseException) -> Exception:
    error.__cause__ = by
    return error


def hidden(error: Exception, by: BaseException) -> Exception:
    """As after ``raise … from None``."""
    error.__context__, error.__suppress_context__ = by, True
    return error


def file_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of the size of files, as this process has the others."""
    real = resource.getrlimit
    of_files = (1024, 1024)
    monkeypatch.setattr(
        resource, "getrlimit", lambda number: of_files if number == resource.RLIMIT_FSIZE else real(number)
    )


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n is"),
        (caused(ServerError("nats-server does not run"), OSError(errno.EMFILE, "x")), "ulimit -n is"),
        (OSError(errno.ENFILE, "x"), "fs.file-max"),
        (BlockingIOError(errno.EAGAIN, "x"), "ulimit -u is"),
        (MemoryError(), "no more memory"),
        (caused(UsageError("wrong"), FileNotFoundError(errno.ENOENT, "x")), ""),
        (ImportError("no such module"), ""),
        (caused(UsageError("cannot write the run"), OSError(errno.EFBIG, "x")), "ulimit -f is"),
        (caused(UsageError("cannot write the run"), file_error(sqlite3.SQLITE_IOERR_WRITE)), "ulimit -f is"),
        (caused(UsageError("cannot write the run"), file_error(sqlite3.SQLITE_CANTOPEN)), ""),
        # The lock of a run folder that another command has.
        (caused(UsageError("another command is writing the run"), BlockingIOError(errno.EAGAIN, "x")), ""),
        (hidden(UsageError("wrong"), OSError(errno.EMFILE, "x")), ""),
    ],
)
def test_the_limit_behind_an_error(error: Exception, text: str) -> None:
    found = limit_behind(error)
    assert text in found
    assert bool(text) is bool(found)


def test_too_little_virtual_memory_is_named_when_a_library_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (200_000 * 1024, 200_000 * 1024))
    assert "ulimit -v is 200000" in limit_behind(ImportError("failed to map segment"))
    assert limit_behind(caused(UsageError("install it"), ModuleNotFoundError("kubernetes"))) == ""


def test_a_chain_of_errors_may_be_a_circle() -> None:
    first, second = UsageError("one"), UsageError("two")
    first.__cause__, second.__cause__ = second, first
    assert limit_behind(first) == ""


@pytest.mark.parametrize(("files", "is_enough"), [(10, False), (31, False), (32, True), (1 << 20, True)])
def test_a_run_does_not_begin_with_so_few_open_files_that_libraries_would_end_it(
    files: int, is_enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    if is_enough:
        require_open_files()
        return
    with pytest.raises(UsageError, match=f"ulimit -n is {files} .*, and the command itself needs 32; raise it"):
        require_open_files()
