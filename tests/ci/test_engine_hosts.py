"""The benchmark over namespaces: its model, its slope, its refusal, and that nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from ci.bench import engine_hosts, engine_namespaces
from ci.bench.engine_hosts import Row, conclusions, slope
from ci.bench.network import moved, predicted


def row(hosts: int, measured: float, busy: float = 0.2) -> Row:
    return Row(1000, hosts, 28, moved(hosts, 28), predicted(hosts, 28, 1000), measured, busy)


def test_the_slope_is_that_of_what_is_moved():
    rows = [row(n, 3 + 9 * moved(n, 28)) for n in (2, 4, 8)]
    assert slope(rows) == pytest.approx((3, 9))
    (line,) = conclusions(rows)
    assert "9.00 ms a MB moved (model 8.55, ratio 1.05)" in line
    assert "the cores are the limit" in conclusions([row(2, 240), row(4, 900, busy=0.99)])[0]
    small = [Row(1000, n, 1e-4, moved(n, 1e-4), 0.4, 0.4 + n, 0.2) for n in (2, 4, 8)]
    assert "no slope of the network" in conclusions(small)[0]


def test_another_user_is_refused_in_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert engine_hosts.main([]) == 2
    said = capsys.readouterr()
    assert (
        said.err
        == "network namespaces: expected to be root, found another user; run it with sudo\n"
    )
    assert not said.out


def names() -> str:
    commands = (["ip", "netns"], ["ip", "link"])
    return "".join(subprocess.run(c, capture_output=True, text=True).stdout for c in commands)


@pytest.mark.skipif(engine_namespaces.missing() is not None, reason="needs root and iproute2")
def test_hosts_are_cleared_away_when_a_signal_ends_the_program():
    try:
        with engine_namespaces.hosts(2):
            engine_namespaces.shape(2, 1000, 0.1)
            assert engine_namespaces.name(1) in names()
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 0)
            pytest.fail("the signal went unnoticed")
    except RuntimeError as error:
        pytest.skip(f"no namespaces on this machine: {error}")
    except KeyboardInterrupt:
        pass
    assert engine_namespaces.BRIDGE not in names()
    assert "daskdl-veth" not in names()
