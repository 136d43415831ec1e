"""A session whose driver is gone ends by itself, so that others may take its partitions."""

from __future__ import annotations

import pytest

from daskdl.stream import Limits
from daskdl.stream.worker.orders import Orders, Spec, Work
from daskdl.stream.worker.session import Session


def session(lease: float) -> Session:
    return Session(Spec(Work("run", None, None, None, Limits(lease=lease)), 1, 0, "tcp://a:1"))


@pytest.mark.timeout(20)
def test_a_session_without_orders_ends_when_its_lease_is_over():
    assert session(0.05).run()["state"] == "expired"


def test_orders_within_the_lease_keep_a_session():
    active = session(60.0)
    active.order(Orders(1, (), "sha", stop=False, within=1.0))
    assert not active._given_up()
