"""Processors of a cluster: their features, and the threads of a task."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from daskdl.cluster.settings import setting
from daskdl.compat.numba_compiler import SAME, has_same, processor
from daskdl.kernels.runtime import mkl
from daskdl.kernels.runtime.precision import permitted, resolved
from daskdl.kernels.runtime.threads import granted_cores
from daskdl.version import __version__

if TYPE_CHECKING:
    from distributed import Client


def precision_on(name: str, client: Client | None) -> str:
    """Return the precision for a cluster; "bf16" sums in the order of AMX tiles if all have AMX.

    See :data:`daskdl.kernels.runtime.precision.PRECISIONS`; precisions other than "bf16" stay.
    """
    if name != "bf16" or not client:
        return resolved(name)
    answers = client.run(permitted, on_error="ignore")
    return resolved(name, all(answers.values()) if answers else permitted())


def threads_of_task(client: Client | None, tasks: int, purpose: str) -> int:
    """Return ``daskdl.threads`` if set, otherwise the threads of a worker.

    Without a client, return this process's cores divided by ``tasks``, which run in parallel.
    """
    asked = setting("threads")
    if asked is not None:
        return int(asked)
    if client is None:
        return max(1, granted_cores() // max(1, tasks))
    from daskdl.cluster.client import Cluster

    return min(Cluster(client).workers(purpose).values())


#: Packages that compute, or compile code that does, besides this one, which may be uninstalled.
PACKAGES = ("llvmlite", "numba", "numpy")


def bits() -> str:
    """Return a sentence that is equal on all machines whose results have the same bits.

    It names no processor if all with AVX2 and FMA give the same bits.
    """
    versions = ", ".join([f"daskdl {__version__}", *(f"{n} {version(n)}" for n in PACKAGES)])
    kind = f"any {SAME}" if has_same() else f"{processor()} alone, which lacks AVX2 or FMA"
    if mkl.library() is not None:
        kind = f"{processor()} alone, by MKL"
    return f"bits of {kind}; {versions}"
