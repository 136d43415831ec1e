"""A watch's status: JSON files that are replaced whole, and counts that survive a kill.

A scan counts when it is in the store, a forecast when it is in ``latest.json``; both come before
``status.json``. After a kill in between, the next start counts them.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import DaskdlError
from daskdl.files import replacing
from nowcast.rain.store import open_rain
from nowcast.rain.texts import utc_text

COUNTS = ("scans", "repeated", "late", "forecasts", "fallbacks")
#: The counts that are also in ``latest.json``.
OF_FORECASTS = COUNTS[2:]


def resumed(out: Path, store: Path) -> dict[str, Any]:
    """Return the status of a folder, with the uncounted work of a killed watch.

    ``taking`` then has the files that it was reading, ``uncounted`` the number of their scans in
    the store.
    """
    status = dict.fromkeys(COUNTS, 0) | read(out / "status.json")
    counts = read(out / "latest.json").get("counts", {})
    status |= {name: max(status[name], counts.get(name, 0)) for name in OF_FORECASTS}
    uncounted = max(0, frames_in(store) - status.get("frames", 2**62))
    status["scans"] += uncounted
    taking = status.get("taking", [])
    status |= dict.fromkeys(("last_error", "failing"), "")
    return status | {"uncounted": uncounted if taking else 0, "damaged": {}}


def frames_in(store: Path) -> int:
    """Return the number of frames of a store; 0 if it cannot be opened."""
    with suppress(DaskdlError), open_rain(store) as rain:
        return int(rain.sizes["time"])
    return 0


def iso(moment: np.datetime64) -> str:
    """Return a time as ``2020-06-01T00:40Z``."""
    return f"{utc_text(moment)}Z"


def now() -> str:
    """Return this machine's time in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file; empty without one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write(path: Path, content: dict[str, Any]) -> None:
    """Replace a JSON file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + os.linesep, encoding="utf-8")
