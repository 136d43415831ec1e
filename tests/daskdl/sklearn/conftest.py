"""The cluster of real worker processes, as the tests of training have it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client

from tests.daskdl.train.conftest import any_client, client, client_of, cluster

__all__ = ["any_client", "client", "client_of", "cluster"]


@pytest.fixture
def current(client: Client) -> Iterator[Client]:
    """Two workers, of the current client."""
    with client.as_current():
        yield client
