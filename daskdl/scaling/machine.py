"""Machine: processor, cores and libraries, which decide its speed, without its name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.cluster.doctor import diagnosis

if TYPE_CHECKING:
    from distributed import Client

#: Parts of a diagnosis that are told.
TOLD = ("python", "packages", "cores")


def machine() -> dict[str, Any]:
    """Return processor, cores, memory and versions of this machine, as plain data."""
    import psutil

    facts = diagnosis()
    libraries = (text.partition(",")[0] for text in facts["libraries"].values())
    return {
        "processor": processor(),
        "memory (GB)": round(psutil.virtual_memory().total / 1e9),
        **{name: facts[name] for name in TOLD},
        "libraries": sorted({name for name in libraries if not name.startswith("openmp")}),
    }


def machines(client: Client) -> list[dict[str, Any]]:
    """Return the :func:`machine` of each host of a cluster, equal ones once.

    Each has the number of ``hosts`` and of ``workers`` besides.
    """
    from distributed.comm.addressing import get_address_host

    workers: dict[str, list[str]] = {}
    for address in sorted(client.nthreads()):
        workers.setdefault(get_address_host(address), []).append(address)
    asked = client.run(machine, workers=[addresses[0] for addresses in workers.values()])
    kinds: list[dict[str, Any]] = []
    for addresses in workers.values():
        facts = asked[addresses[0]]
        kind = next((one for one in kinds if facts.items() <= one.items()), None)
        if kind is None:
            kind = {"hosts": 0, "workers": 0, **facts}
            kinds.append(kind)
        kind["hosts"] += 1
        kind["workers"] += len(addresses)
    return kinds


def processor() -> str:
    """Return the name that the processor gives itself, and its family and model.

    Virtual machines name several generations alike, by their maker's brand.
    """
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    told: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.strip())
    name = told.get("model name") or platform.processor() or platform.machine()
    if "cpu family" not in told:
        return name
    return f"{name} (family {told['cpu family']}, model {told.get('model', '?')})"
