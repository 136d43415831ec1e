"""The Dask client that a program has made, if it has."""

from __future__ import annotations

import sys
from typing import Any


def current_client() -> Any:
    """Return the current synchronous Dask client, or None."""
    if "distributed" not in sys.modules:  # then nobody has made one, and the import is slow
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    return None if client.asynchronous else client
