"""Kernels: numpy arrays in, numpy arrays out; BLAS and numba. They import no layer above them."""

from daskdl.kernels.runtime.memory import keep_freed

keep_freed()
