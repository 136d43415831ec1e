"""Processors of a cluster: their abilities, and the arithmetic threads of a task."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from daskdl.cluster.settings import setting
from daskdl.compat.numba_compiler import SAME, has_same, processor
from daskdl.kernels.runtime import mkl
from daskdl.kernels.runtime.precision import permitted, resolved
from daskdl.kernels.runtime.threads import granted_cores

if TYPE_CHECKING:
    from distributed import Client


def precision_on(name: str, client: Client | None) -> str:
    """Return a precision with its order of sums: that of tiles if all workers have AMX.

    See :data:`daskdl.kernels.runtime.precision.PRECISIONS`; all but "bf16" stay as they are.
    """
    if name != "bf16" or not client:
        return resolved(name)
    answers = client.run(permitted, on_error="ignore")
    return resolved(name, all(answers.values()) if answers else permitted())


def threads_of_task(client: Client | None, tasks: int, what: str) -> int:
    """Return ``daskdl.threads``, or those of a worker, or the cores shared out to so many tasks.

    Without a client that many tasks are at work at a time in this process.
    """
    asked = setting("threads")
    if asked is not None:
        return int(asked)
    if client is None:
        return max(1, granted_cores() // max(1, tasks))
    from daskdl.cluster.client import Cluster

    return min(Cluster(client).workers(what).values())


#: Packages whose code computes, or makes code that does.
PACKAGES = ("daskdl", "llvmlite", "numba", "numpy")


def bits() -> str:
    """Return a sentence that is the same wherever results are the same bits.

    It names no processor where all with AVX2 and FMA compute the same.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    kind = f"any {SAME}" if has_same() else f"{processor()} alone, which lacks AVX2 or FMA"
    if mkl.library() is not None:
        kind = f"{processor()} alone, by MKL"
    return f"bits of {kind}; {versions}"
