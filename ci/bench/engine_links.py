"""Hosts of one machine behind links of a set rate, and a model of an exchange's time."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

BRIDGE = "daskdl-bench"
NETWORK = "10.213.77"

#: Address of this side, where the scheduler and the driver are.
HERE = f"{NETWORK}.1"


def missing() -> str | None:
    """Return in one sentence why there can be no namespaces here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces: expected to be root, found another user; run it with sudo"
    for command in ("ip", "tc"):
        if shutil.which(command) is None:
            return f"network namespaces: expected {command}, found none; install iproute2"
    return None


def name(host: int) -> str:
    """Return the name of a host's namespace."""
    return f"{BRIDGE}-{host}"


def address(host: int) -> str:
    """Return the address of a host."""
    return f"{NETWORK}.{10 + host}"


def inside(host: int) -> list[str]:
    """Return the words before a command that make it run on a host."""
    return ["ip", "netns", "exec", name(host)]


@contextmanager
def hosts(count: int) -> Iterator[None]:
    """Make so many hosts, and clear them away, also when a signal ends the program."""
    clear()
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        _run("ip", "link", "add", BRIDGE, "type", "bridge")
        _run("ip", "address", "add", f"{HERE}/24", "dev", BRIDGE)
        _run("ip", "link", "set", BRIDGE, "up")
        for host in range(count):
            there = ["ip", "-n", name(host)]
            _run("ip", "netns", "add", name(host))
            peer = ["type", "veth", "peer", "name", "eth0", "netns", name(host)]
            _run("ip", "link", "add", _link(host), *peer)
            _run("ip", "link", "set", _link(host), "master", BRIDGE, "up")
            _run(*there, "address", "add", f"{address(host)}/24", "dev", "eth0")
            _run(*there, "link", "set", "lo", "up")
            _run(*there, "link", "set", "eth0", "up")
        yield
    finally:
        clear()
        signal.signal(signal.SIGTERM, before)


def shape(count: int, megabits: float, delay: float) -> str | None:
    """Give all links a rate both ways and a delay in ms; return why there is no delay, if so."""
    burst = max(32_000, int(megabits * 1e6 / 8 / 1000))  # what passes in a millisecond
    rate = ["tbf", "rate", f"{megabits:g}mbit", "burst", str(burst), "latency", "50ms"]
    why = None
    for host in range(count):
        for where, device in (([], _link(host)), (["-n", name(host)], "eth0")):
            _run("tc", *where, "qdisc", "replace", "dev", device, "root", "handle", "1:", *rate)
        late = ["parent", "1:1", "netem", "delay", f"{delay:g}ms"]
        command = ["tc", "-n", name(host), "qdisc", "replace", "dev", "eth0", *late]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            why = "tc netem is not in this kernel (CONFIG_NET_SCH_NETEM): no delay is added"
    return why


def clear() -> None:
    """Take away all that :func:`hosts` makes; what is not there is no mistake."""
    found = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=False).stdout
    for namespace in (line.split()[0] for line in found.splitlines() if line.strip()):
        if namespace.startswith(f"{BRIDGE}-"):
            host = int(namespace.rpartition("-")[2])
            _quietly("ip", "link", "delete", _link(host))
            _quietly("ip", "netns", "delete", namespace)
    _quietly("ip", "link", "delete", BRIDGE)


def _link(host: int) -> str:
    return f"daskdl-veth{host}"


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def _quietly(*command: str) -> None:
    subprocess.run(command, capture_output=True, check=False)


#: Milliseconds of a message, and the payload's part of a link's rate.
MESSAGE, PAYLOAD = 0.18, 0.936


def moved(n: int, megabytes: float) -> float:
    """Return the MB that pass each link each way."""
    return 2 * (n - 1) / n * megabytes


def predicted(n: int, megabytes: float, megabits: float) -> float:
    """Return the milliseconds of both exchanges."""
    return 2 * math.ceil(math.log2(n)) * MESSAGE + moved(n, megabytes) * per_megabyte(megabits)


def per_megabyte(megabits: float) -> float:
    """Return the milliseconds that a MB takes through a link."""
    return 8000 / (PAYLOAD * megabits)
