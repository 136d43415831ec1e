from __future__ import annotations

import json
import platform

from daskdl.scaling.machine import machine, machines


def test_a_machine_is_told_without_its_name() -> None:
    found = machine()
    assert found["cores"] >= 1
    assert found["memory (GB)"] > 0
    assert found["processor"]
    assert {"daskdl", "numpy", "distributed"} <= found["packages"].keys()
    assert found["libraries"]
    assert platform.node() not in json.dumps(found).replace(found["processor"], "")


def test_equal_hosts_are_told_once(client) -> None:
    (found,) = machines(client)
    assert (found["hosts"], found["workers"]) == (1, 2)
    assert found["processor"] == machine()["processor"]
