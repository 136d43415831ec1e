"""Bits: what decides the last bits of this process' results, besides what is computed."""

from __future__ import annotations

from importlib.metadata import version

from daskdl.compat.numba_compiler import SAME, has_same, processor
from daskdl.kernels.runtime import mkl

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
