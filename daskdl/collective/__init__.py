"""Numbers added up and handed round between workers: numpy in, numpy out; no models, no samples.

Collective tasks of one's own run by :func:`run`; their calls speak by a :class:`Communicator`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daskdl.collective.communicator import Communicator
    from daskdl.collective.launch import run

__all__ = ["Communicator", "run"]


def __getattr__(name: str) -> Any:
    # Loaded when used: they bring distributed, and a fit in one process does without it.
    if name == "Communicator":
        return importlib.import_module("daskdl.collective.communicator").Communicator
    if name == "run":
        return importlib.import_module("daskdl.collective.launch").run
    raise AttributeError(f"module 'daskdl.collective' has no attribute {name!r}")
