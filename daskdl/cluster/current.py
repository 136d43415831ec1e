"""The Dask client that a program has made, if it has, and what its cluster holds."""

from __future__ import annotations

import sys
from typing import Any


def is_future(value: Any) -> bool:
    """Return whether something is what a cluster computes or has computed."""
    if "distributed" not in sys.modules:
        return False
    from distributed import Future

    return isinstance(value, Future)


def current_client(asynchronous: bool = False) -> Any:
    """Return the current Dask client, or None; ``asynchronous`` ones only if they are asked for."""
    if "distributed" not in sys.modules:  # then nobody has made one, and the import is slow
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    return None if client.asynchronous and not asynchronous else client
