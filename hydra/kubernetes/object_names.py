"""The names of a run's objects, and the labels by which Hydra finds them. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Final

RUN: Final = "hydra/run"
"""The label of every object of a run; its value is :func:`slug` of the run's name."""
RUN_NAME: Final = "hydra/run-name"
"""The annotation with the run's whole name."""
GROUP: Final = "hydra/group"
ROLE: Final = "hydra/role"
PART: Final = "hydra/part"
"""The label with the kind of an object: ``group``, ``keeper``, ``environment``, ``controller``."""
OPENING: Final = "hydra/opening"
"""The label with the id of the process that created an object; another process of the same run has another id."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "hydra"

_LONGEST: Final = 40
_ODD: Final = re.compile(r"[^a-z0-9]+")


def slug(name: str, longest: int = _LONGEST) -> str:
    """A name of lower-case letters, digits and ``-`` that begins and ends with a letter or digit.

    A changed name ends with a digest of the original, so different names stay different.
    """
    plain = _ODD.sub("-", name.lower()).strip("-")
    if plain == name and len(plain) <= longest:
        return plain
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    kept = plain[: longest - len(digest) - 1].strip("-")
    return f"{kept}-{digest}" if kept else digest


def object_name(run: str, what: str, opening: str = "") -> str:
    """The name of an object of a run, at most 63 characters; with ``opening`` it differs for each opening."""
    # A Job's name is a label of its Pod, and a Pod's name is its host name: both have at most 63 characters.
    name = f"hydra-{slug(run, 26)}-{slug(what, 24)}"
    return f"{name}-{opening[:5]}" if opening else name


def labels(run: str, part: str, **more: str) -> dict[str, str]:
    """The labels of an object of a run."""
    return {MANAGED_BY: MANAGER, RUN: slug(run), PART: part, **{f"hydra/{k}": slug(v) for k, v in more.items()}}


def selector(run: str = "", parts: Collection[str] = (), opening: str = "") -> str:
    """The label selector of all objects of one run or of all runs, or only of some parts or of one opening."""
    terms = [f"{MANAGED_BY}={MANAGER}", f"{RUN}={slug(run)}" if run else RUN]
    if opening:
        terms.append(f"{OPENING}={opening}")
    if parts:
        terms.append(f"{PART} in ({','.join(sorted(parts))})")
    return ",".join(terms)


def among(groups: Collection[str]) -> str:
    """A further term of a label selector, which matches these groups."""
    return f"{GROUP} in ({','.join(sorted(map(slug, groups)))})"
