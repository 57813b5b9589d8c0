"""Which errors of a client are limits of its own host. C++ clients: ``native/src/common/local_limits.cc``."""

from __future__ import annotations

import errno
import os

from hydra.model.local_limits import IN_USE, LOCAL_LIMITS


def local_limit(error: BaseException) -> str:
    """The name of the limit of this host that caused an error; "" if another end or the network caused it.

    Some libraries pass on only the kernel's text for its error.
    """
    name = errno.errorcode.get(getattr(error, "errno", None) or 0, "")
    return name if name in LOCAL_LIMITS else local_limit_in(str(error))


def local_limit_in(text: str) -> str:
    """The limit whose name, or whose text as the C library has it, is part of a client's text; "": there is none."""
    # The text of a server's bind that failed is no text of a limit.
    words = {name: os.strerror(getattr(errno, name)) for name in LOCAL_LIMITS if name != IN_USE}
    return next((name for name in LOCAL_LIMITS if name in text or words.get(name, name) in text), "")
