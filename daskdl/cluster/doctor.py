"""Doctor: versions, libraries, memory, disk and network of this machine or of a cluster."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.cluster.failures import lacks_daskdl
from daskdl.cluster.starting.address import one_line
from daskdl.version import __version__

if TYPE_CHECKING:
    from distributed import Client

#: Packages whose versions affect speed or results.
PACKAGES = ("daskdl", "numpy", "scipy", "numba", "dask", "distributed", "xarray", "zarr")

#: Prefixes of environment variables that affect speed or results.
DECIDING = ("DASK_", "MALLOC_", "MKL_", "NUMBA_", "OPENBLAS_")

#: Seconds to wait for workers of a running scheduler.
WORKERS_WITHIN = 30

#: To time the network: bytes that one worker fetches from another, and number of fetches.
FETCHED, FETCHES = 64 << 20, 5


def diagnosis(folder: str | None = None) -> dict[str, Any]:
    """Return the facts that affect speed and results on this machine, as plain data.

    Parameters
    ----------
    folder : path, optional
        Folder on the disk whose free space is reported; by default the temporary folder.
    """
    import psutil
    import threadpoolctl
    from distributed.system import MEMORY_LIMIT

    from daskdl.kernels.products.ordered import block_of
    from daskdl.kernels.runtime.threads import available_cores, threads

    libraries = {
        Path(library["filepath"]).name: f"{_kind(library)}, {library['num_threads']} threads"
        for library in threadpoolctl.threadpool_info()
        if _computes_here(Path(library["filepath"]))
    }
    return {
        "host": platform.node(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "libraries": libraries,
        "cores": available_cores(),
        "thread budget": threads(),
        "memory limit (GB)": round(MEMORY_LIMIT / 1e9, 1),
        "free memory (GB)": round(psutil.virtual_memory().available / 1e9, 1),
        "free disk (GB)": round(shutil.disk_usage(folder or tempfile.gettempdir()).free / 1e9, 1),
        "kernel cache": _folder(Path(block_of.stats.cache_path)),
        "environment": {k: v for k, v in sorted(os.environ.items()) if _decides_speed(k)},
    }


def diagnosis_of(client: Client) -> dict[str, Any]:
    """Return the facts that affect speed and results on all machines of a cluster.

    Returns
    -------
    dict
        "client", "scheduler" and "workers" (by address), each a :func:`diagnosis`, or "failed" with
        a sentence if that was not possible; "differences", sentences about versions that are not
        the client's and about missing packages; and "network", the rate at which one worker fetches
        from another, if there are two.
    """
    here = diagnosis()
    try:
        there = client.run_on_scheduler(diagnosis)
    except Exception as error:  # a scheduler that cannot load the function may raise any kind
        there = error
    workers = client.run(_diagnosis_of_worker, on_error="return")
    everyone = {"scheduler": there, **{f"worker {address}": w for address, w in workers.items()}}
    facts = {name: _facts(name, it) for name, it in everyone.items()}
    well = [address for address in workers if "failed" not in facts[f"worker {address}"]]
    return {
        "client": here,
        "scheduler": facts["scheduler"],
        "workers": {address: facts[f"worker {address}"] for address in workers},
        "differences": [line for name, it in facts.items() for line in _unlike(name, it, here)],
        "network": _network(client, well),
    }


def _facts(name: str, answer: Any) -> dict[str, Any]:
    """Return a diagnosis, or a sentence why there is none."""
    if not isinstance(answer, BaseException):
        return dict(answer)
    if lacks_daskdl(answer):
        reason = f"expected daskdl {__version__} as here, found none; install it there"
    else:
        reason = f"expected a diagnosis, found {type(answer).__name__}: {one_line(answer)}"
    return {"failed": f"{name}: {reason}"}


def _diagnosis_of_worker(dask_worker: Any) -> dict[str, Any]:
    facts = diagnosis(dask_worker.local_directory)
    limit = dask_worker.memory_manager.memory_limit
    return {
        **facts,
        "threads": dask_worker.state.nthreads,
        "memory limit (GB)": round(limit / 1e9, 1) if limit else facts["memory limit (GB)"],
    }


def _unlike(name: str, it: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """Return a sentence for each version that differs from the client's."""
    if "failed" in it:
        return [it["failed"]]
    pairs = {"python": (it["python"], here["python"])}
    pairs |= {p: (it["packages"][p], here["packages"][p]) for p in PACKAGES}
    pairs["libraries"] = _libraries(it), _libraries(here)
    return [
        f"{name}: expected {package} {ours} as here, found {theirs}"
        for package, (theirs, ours) in pairs.items()
        if theirs != ours
    ]


def _computes_here(library: Path) -> bool:
    """Whether a library is not bundled with the wheel of another package, such as OpenCV's."""
    wheel, ending, _ = library.parent.name.partition(".libs")
    return not ending or wheel == "numpy"


def _kind(library: dict[str, Any]) -> str:
    """Return kind and version; for OpenBLAS also the kind of processor of its kernels.

    OpenBLAS chooses these itself or by ``OPENBLAS_CORETYPE``, which may not be the best ones.
    """
    chosen = library.get("architecture")
    return f"{library['internal_api']} {library['version']}{f' {chosen}' if chosen else ''}"


def _libraries(it: dict[str, Any]) -> str:
    """Return the names of all BLAS libraries; different libraries or kernels give other bits."""
    libraries = {text.partition(",")[0] for text in it["libraries"].values()}
    return " and ".join(sorted(name for name in libraries if not name.startswith("openmp")))


def _network(client: Client, workers: list[str]) -> dict[str, Any]:
    if len(workers) < 2:
        return {}
    import numpy as np

    giver, taker = workers[:2]
    rates = []
    for _ in range(FETCHES):
        data = client.submit(np.ones, FETCHED, np.uint8, workers=[giver], pure=False)
        client.submit(len, data, workers=[giver], pure=False).result()
        client.submit(int, workers=[taker], pure=False).result()
        began = time.perf_counter()
        client.submit(len, data, workers=[taker], pure=False).result()
        rates.append(FETCHED / (time.perf_counter() - began) / 1e6)
    return {"from": giver, "to": taker, "MB/s": round(max(rates))}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _decides_speed(variable: str) -> bool:
    # DASK_INTERNAL_ variables have Dask's whole configuration, with any secrets, for its children.
    internal = variable.startswith("DASK_INTERNAL_")
    return variable.endswith("_NUM_THREADS") or (variable.startswith(DECIDING) and not internal)


def _folder(path: Path) -> dict[str, Any]:
    existing = next(p for p in (path, *path.parents) if p.exists())
    return {"folder": str(path), "writable": os.access(existing, os.W_OK)}
